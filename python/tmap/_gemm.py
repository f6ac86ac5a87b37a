# SPDX-License-Identifier: Apache-2.0
"""Grouped products: many matrix products of different sizes in one call."""
import ctypes
from ctypes import byref
from functools import lru_cache
from typing import Any, NamedTuple, Tuple

from . import _structs as c
from ._arrays import Site
from ._errors import check
from ._library import lib
from ._service import offset_view

OPERANDS = ("bf16", "f16", "f8_e4m3")
EPILOGUES = ("none", "bias", "swiglu", "accumulate")
_N_BY_K, _K_BY_N = 0, 1


class Prepared(NamedTuple):
    """All of a product but its addresses."""
    problem: Any  # RowProblem or WeightProblem
    members: bytes
    out_shape: Tuple[int, ...]  # row-major
    is_turned: bool  # A and B change places, and the output is the product's transpose
    has_sums: bool  # False: nothing to sum over, or no column


def _check_units(item, **extents):
    for name, extent in extents.items():
        if extent * item % 16:
            raise ValueError(f"{name} is {extent}: its elements must take a multiple of 16 bytes")


def _is_row(strides, shape, axis):
    return strides[axis] == 1 or shape[axis] == 1


def _rows(a_shape, a_strides, b_shape, b_strides, operand, item):
    rows, k = a_shape
    groups, b_k, n = b_shape
    if b_k != k:
        raise ValueError(f"a has rows of {k} elements, b groups of {b_k} rows: they must be equal")
    if not _is_row(a_strides, a_shape, 1):
        raise ValueError("the ragged operand must be row-major along what is summed over: call .contiguous() first")
    if _is_row(b_strides, b_shape, 2):
        layout, pitch = _K_BY_N, b_strides[1]
    elif _is_row(b_strides, b_shape, 1):
        layout, pitch = _N_BY_K, b_strides[2]
    else:
        raise ValueError("one of the last two strides of the operand with groups must be 1: call .contiguous() first")
    if operand == "f8_e4m3" and layout == _K_BY_N:
        raise ValueError("8-bit operands are read along k: give b as b_n_by_k.transpose(-2, -1)")
    _check_units(item, n=n, k=k)
    problem = c.RowProblem(operand=OPERANDS.index(operand), groups=groups, layout=layout, rows=rows, n=n, k=k,
                           b_group_pitch_bytes=b_strides[0] * item)
    # The step of a dim of one element may be anything.
    problem.a.pitch_bytes = (a_strides[0] if rows > 1 else k) * item
    problem.b.pitch_bytes = pitch * item
    return problem, (rows, n), k > 0 and n > 0


def _weights(a_shape, a_strides, b_shape, b_strides, groups, operand, item):
    m, k = a_shape
    b_k, n = b_shape
    if b_k != k:
        raise ValueError(f"a has rows of {k} elements, b has {b_k} rows: they must be equal")
    if operand == "f8_e4m3":
        raise ValueError("sums over ragged rows are of bf16 and f16")
    if not _is_row(a_strides, a_shape, 0) or not _is_row(b_strides, b_shape, 1):
        raise ValueError("where rows are summed over, a must be column-major (x.t() of a row-major x) and b row-major")
    _check_units(item, m=m, n=n)
    problem = c.WeightProblem(operand=OPERANDS.index(operand), groups=groups, rows=k, m=m, n=n,
                              c_group_pitch_bytes=m * n * item)
    problem.a.pitch_bytes = (a_strides[1] if k > 1 else m) * item
    problem.b.pitch_bytes = (b_strides[0] if k > 1 else n) * item
    return problem, (groups, m, n), m > 0 and n > 0


def prepare(a_shape, a_strides, b_shape, b_strides, operand: str, groups: int, offset_bytes: int,
            format: int) -> Prepared:
    """Of shapes and strides (in elements). Fails with ValueError for what no grouped product does."""
    item = 1 if operand == "f8_e4m3" else 2
    ranks, is_turned = (len(a_shape), len(b_shape)), False
    if ranks == (3, 2):
        # C^T = B^T A^T, whose rows are ragged where the columns of C are.
        is_turned = True
        a_shape, a_strides, b_shape, b_strides = (b_shape[::-1], b_strides[::-1], (a_shape[0], a_shape[2], a_shape[1]),
                                                  (a_strides[0], a_strides[2], a_strides[1]))
    if ranks == (2, 2):
        problem, out, has_sums = _weights(a_shape, a_strides, b_shape, b_strides, groups, operand, item)
    elif ranks in ((2, 3), (3, 2)):
        if b_shape[0] != groups:
            raise ValueError(f"offs cuts {groups} groups, the operand with groups has {b_shape[0]}")
        problem, out, has_sums = _rows(a_shape, a_strides, b_shape, b_strides, operand, item)
    elif ranks == (3, 3):
        raise ValueError("both operands have groups and no dim is ragged: that is a batched product (torch.bmm)")
    else:
        raise ValueError(f"operands have 2 or 3 dims, not {ranks[0]} and {ranks[1]}")
    problem.offsets.format, problem.offsets.bytes = format, offset_bytes
    problem.c.pitch_bytes = out[-1] * 2
    return Prepared(type(problem), bytes(problem), out, is_turned, has_sums)


prepared = lru_cache(maxsize=1024)(prepare)


@lru_cache(maxsize=256)
def workspace_bytes(groups: int) -> int:
    """Device memory that a product of so many groups works in."""
    needed = ctypes.c_uint64()
    check(lib.tmap_gemm_workspace_bytes(groups, byref(needed)))
    return needed.value


def enqueue(ready: Prepared, problem, a: int, b: int, out: int, offs: int, workspace: int, stream: int,
            options=None) -> None:
    """`problem` is a copy of `ready.members`, to which the addresses are added here."""
    if ready.is_turned:
        a, b = b, a
    problem.a.address, problem.b.address, problem.c.address, problem.offsets.values = a, b, out, offs
    function = lib.tmap_gemm_rows if ready.problem is c.RowProblem else lib.tmap_gemm_weights
    check(function(byref(problem), workspace, workspace_bytes(problem.groups), options, stream))


def grouped_mm(a, b, offs, *, out, format: str = "ends", epilogue: str = "none", bias=None, row_scales=None,
               column_scales=None, fast_accumulation: bool = False, statuses=None, header=None, plan: int = None,
               stream=None):
    """Many products in one call, of arrays of any library in device memory; the sizes may exist only there.

    | a | b | ragged | out |
    |---|---|---|---|
    | [rows, k] | [groups, k, n] | rows of a | [rows, n] |
    | [groups, m, k] | [k, columns], column-major | columns of b | [m, columns], column-major |
    | [m, k], column-major | [k, n] | what is summed over | [groups, m, n] |

    `offs`, int32 or int64 in device memory, cuts the ragged dim as `format` says ("ends", "prefix", "sizes"). Types are
    bf16, f16 and, in the first row, f8_e4m3 (out is bf16, b is stored [groups, n, k]). Addresses and pitches are
    multiples of 16 bytes, and so are rows of n and k elements. Rows of out that belong to no group stay as they are.

    `epilogue`, in the first row of the table: "bias" adds `bias` [groups, n]; "swiglu" halves the columns; also, in the
    last, "accumulate" adds to what out held. `row_scales` [rows] and `column_scales` [groups, n] are f32 factors.
    `fast_accumulation`, of f8_e4m3 only, sums up in the tensor cores, to 13 bits, instead of f32 (docs/grouped_gemm.md).
    `statuses`, uint32 [groups], and `header`, uint32 [4], tell on the device what became of each group
    (docs/grouped_gemm.md). Memory to work in comes from PyTorch or CuPy, whichever an array is of.

    Never waits for the device; may be captured in a graph. Returns `out`. Raises `TypeError`, `ValueError`, `Error`.
    """
    site = Site(stream, a, b, offs, out)
    if site.on_host:
        raise ValueError("grouped products are of arrays in device memory")
    if epilogue not in EPILOGUES:
        raise ValueError(f"epilogue is one of {', '.join(EPILOGUES)}, not {epilogue!r}")
    left, right = site.read(a, "a", OPERANDS), site.read(b, "b", OPERANDS)
    if left.dtype != right.dtype:
        raise TypeError(f"a has elements of {left.dtype}, b of {right.dtype}: they must be equal")
    cut, groups, number = offset_view(site, offs, format)
    steps = [tuple(stride // view.item_bytes for stride in view.strides) for view in (left, right)]
    ready = prepared(left.shape, steps[0], right.shape, steps[1], left.dtype, groups, cut.item_bytes, number)
    problem = ready.problem.from_buffer_copy(ready.members)
    target = _set_output(site, ready, problem, out, "f16" if left.dtype == "f16" else "bf16", epilogue)
    if not ready.has_sums:
        raise ValueError("n, k and m are not 0")
    _set_epilogue(site, problem, epilogue, bias, row_scales, column_scales)
    if fast_accumulation:
        set_fast_accumulation(problem)
    options = c.GemmOptions(plan=0 if plan is None else plan + 1,
                            statuses=site.optional(statuses, "statuses", ("u32", "i32"), groups, write=True),
                            header=site.optional(header, "header", ("u32", "i32"), 4, write=True))
    with site.use():
        workspace, _ = site.memory(workspace_bytes(groups))
        enqueue(ready, problem, left.address, right.address, target.address, cut.address, workspace, site.stream,
                byref(options))
    return out


def _set_output(site, ready, problem, out, dtype, epilogue):
    view = site.write(out, "out", (dtype,))
    shape, strides = view.shape, view.strides
    if ready.is_turned:
        shape, strides = shape[::-1], strides[::-1]
    expected = ready.out_shape
    if epilogue == "swiglu":
        expected = (*expected[:-1], expected[-1] // 2)
    if shape != expected or strides[-1] != view.item_bytes:
        raise ValueError(f"out has the shape {view.shape} and strides {view.strides} in bytes; the product is "
                         f"{expected[::-1] if ready.is_turned else expected}, its rows without gaps")
    problem.c.pitch_bytes = strides[-2]
    if len(shape) == 3:
        problem.c_group_pitch_bytes = strides[0]
    return view


def set_fast_accumulation(problem) -> None:
    """Fails with ValueError for what has no such sums."""
    if problem.operand != OPERANDS.index("f8_e4m3"):
        raise ValueError("fast_accumulation is for operands of f8_e4m3")
    problem.fast_accumulation = 1


def _set_epilogue(site, problem, epilogue, bias, row_scales, column_scales):
    problem.epilogue = EPILOGUES.index(epilogue)
    if (epilogue == "bias") != (bias is not None):
        raise ValueError('bias goes with epilogue="bias"')
    if isinstance(problem, c.RowProblem):
        problem.bias = site.optional(bias, "bias", ("bf16", "f16"), problem.groups * problem.n)
        problem.row_scales = site.optional(row_scales, "row_scales", ("f32",), problem.rows)
        problem.column_scales = site.optional(column_scales, "column_scales", ("f32",), problem.groups * problem.n)
    elif row_scales is not None or column_scales is not None:
        raise ValueError("scales are for products whose rows or columns are ragged")
