# SPDX-License-Identifier: Apache-2.0
"""Grouped products: many matrix products of different sizes in one call."""
import ctypes
import enum
from ctypes import byref
from functools import lru_cache
from typing import Any, NamedTuple, Tuple

from . import _structs as c
from ._arrays import Site
from ._dlpack import packed_strides
from ._batch import PLAIN, call_on, offset_count, reports_of
from ._errors import check
from ._libraries import Form
from ._library import lib
from ._numbers import choice, integer, status_bits

OPERANDS = ("bf16", "f16", "f8_e4m3")
EPILOGUES = ("none", "bias", "swiglu", "accumulate")
_N_BY_K, _K_BY_N = 0, 1


class GroupFault(enum.IntFlag):
    """The bits of a status: why a group was bad. `EMPTY` is no fault. All but `ROWS` belong to
    products by pointers. `explain` puts them into words."""
    ROWS = 1 << 0
    EXTENT = 1 << 1
    ADDRESS = 1 << 2
    PITCH = 1 << 3
    EMPTY = 1 << 31


def group_faults_of(status) -> GroupFault:
    """Names the bits in an element of `statuses`, of uint32 or int32: `GroupFault(0)` for a good
    group."""
    return GroupFault(status_bits(status))


class Prepared(NamedTuple):
    """All of a product but its addresses."""
    function: Any  # of the library
    problem: Any  # RowProblem or WeightProblem, which nobody changes any more
    pack: Any  # joins the pieces and the addresses of offs, a, b, out to its bytes
    pieces: Tuple[bytes, ...]
    out_shape: Tuple[int, ...]
    out_strides: Tuple[int, ...]  # in elements, of an output without gaps
    is_turned: bool  # A and B change places, and the output is the product's transpose
    has_sums: bool  # False: nothing to sum over, or no column
    workspace_bytes: int  # 0: nothing to do


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
        raise ValueError("the ragged operand must be row-major along what is summed over: call "
                         ".contiguous() first")
    if _is_row(b_strides, b_shape, 2):
        layout, pitch = _K_BY_N, b_strides[1]
    elif _is_row(b_strides, b_shape, 1):
        layout, pitch = _N_BY_K, b_strides[2]
    else:
        raise ValueError("one of the last two strides of the operand with groups must be 1: call "
                         ".contiguous() first")
    if operand == "f8_e4m3" and layout == _K_BY_N:
        raise ValueError("8-bit operands are read along k: give b as b_n_by_k.transpose(-2, -1)")
    _check_units(item, n=n, k=k)
    problem = c.RowProblem(operand=OPERANDS.index(operand), groups=groups, layout=layout, rows=rows,
                           n=n, k=k, b_group_pitch_bytes=b_strides[0] * item)
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
        raise ValueError("where rows are summed over, a must be column-major (x.t() of a row-major "
                         "x) and b row-major")
    _check_units(item, m=m, n=n)
    problem = c.WeightProblem(operand=OPERANDS.index(operand), groups=groups, rows=k, m=m, n=n,
                              c_group_pitch_bytes=m * n * item)
    problem.a.pitch_bytes = (a_strides[1] if k > 1 else m) * item
    problem.b.pitch_bytes = (b_strides[0] if k > 1 else n) * item
    return problem, (groups, m, n), m > 0 and n > 0


def prepare(a_shape, a_strides, b_shape, b_strides, operand: str, groups: int, offset_bytes: int,
            format: int) -> Prepared:
    """Prepares a product of shapes and strides (in elements). Raises ValueError for what no grouped
    product does."""
    item, groups = 1 if operand == "f8_e4m3" else 2, integer(groups, "the number of groups", 32)
    ranks, is_turned = (len(a_shape), len(b_shape)), False
    if ranks == (3, 2):
        # C^T = B^T A^T, whose rows are ragged where the columns of C are.
        is_turned = True
        a_shape, a_strides, b_shape, b_strides = (b_shape[::-1], b_strides[::-1],
                                                  (a_shape[0], a_shape[2], a_shape[1]),
                                                  (a_strides[0], a_strides[2], a_strides[1]))
    if ranks == (2, 2):
        problem, out, has_sums = _weights(a_shape, a_strides, b_shape, b_strides, groups, operand,
                                          item)
    elif ranks in ((2, 3), (3, 2)):
        if b_shape[0] != groups:
            raise ValueError(f"offs cuts {groups} groups, the operand with groups has {b_shape[0]}")
        problem, out, has_sums = _rows(a_shape, a_strides, b_shape, b_strides, operand, item)
    elif ranks == (3, 3):
        raise ValueError("both operands have groups and no dim is ragged: that is a batched "
                         "product (torch.bmm)")
    else:
        raise ValueError(f"operands have 2 or 3 dims, not {ranks[0]} and {ranks[1]}")
    problem.offsets.format, problem.offsets.bytes = format, offset_bytes
    problem.c.pitch_bytes = out[-1] * 2
    function = lib.tmap_gemm_rows if isinstance(problem, c.RowProblem) else lib.tmap_gemm_weights
    strides = packed_strides(out)
    if is_turned:
        out, strides = out[::-1], strides[::-1]
    return Prepared(function, problem, *_in_pieces(problem), out, strides, is_turned, has_sums,
                    workspace_bytes(groups) if has_sums else 0)


def _in_pieces(problem):
    return c.in_pieces(problem,
                       *(c.place((type(problem), name)) for name in ("offsets", "a", "b", "c")))


def workspace_bytes(groups: int) -> int:
    needed = ctypes.c_uint64()
    check(lib.tmap_gemm_workspace_bytes(groups, byref(needed)))
    return needed.value


def enqueue(ready: Prepared, a: int, b: int, out: int, offs: int, workspace: int, stream: int,
            reports: bytes = PLAIN, rest: bytes = None) -> None:
    """Enqueues a product. `rest` replaces the part of the problem after the output's address."""
    if ready.is_turned:
        a, b = b, a
    first, second, third, fourth, last = ready.pieces
    problem = ready.pack(first, offs, second, a, third, b, fourth, out, rest or last)
    check(ready.function(problem, call_on(stream, workspace, ready.workspace_bytes, reports)))


def grouped_mm(a, b, offs, *, out, format: str = "ends", epilogue: str = "none", bias=None,
               row_scales=None, column_scales=None, fast_accumulation: bool = False, statuses=None,
               header=None, plan: int = None, check=None, stream=None):
    """Computes many products in one call, of arrays of any library in device memory. The sizes may
    exist only there.

    | a | b | ragged | out |
    |---|---|---|---|
    | [rows, k] | [groups, k, n] | rows of a | [rows, n] |
    | [groups, m, k] | [k, columns], column-major | columns of b | [m, columns], column-major |
    | [m, k], column-major | [k, n] | what is summed over | [groups, m, n] |

    `offs`, int32 or int64 in device memory, cuts the ragged dim by its `format`: "ends", "prefix"
    or "sizes". Types are bf16, f16 and, in the first row, f8_e4m3 (out is bf16, b is stored
    [groups, n, k]). Addresses and pitches are multiples of 16 bytes, and so are rows of n and k
    elements. Rows of out that belong to no group stay as they are.

    `epilogue`, in the first row of the table: "bias" adds `bias` [groups, n]; "swiglu" halves the
    columns; "accumulate", also in the last row, adds to the content of out. `row_scales` [rows] and
    `column_scales` [groups, n] are f32 factors. `fast_accumulation`, of f8_e4m3 only, sums up in
    the tensor cores, to 13 bits, instead of f32 (docs/grouped_gemm.md). `statuses`, uint32
    [groups], and `header`, uint32 [4], get the fate of each group on the device (`group_faults_of`,
    docs/grouped_gemm.md). `check` is as in `tmap.ragged`. The workspace comes from PyTorch or CuPy,
    by the arrays.

    Does not wait for the device unless it is checked; a graph may capture it. Returns `out`. Raises
    `TypeError`, `ValueError`, `Error`.
    """
    site = Site(stream, a, b, offs, out)
    if site.on_host:
        raise ValueError("grouped products are of arrays in device memory")
    left, right, cut = site.read(a, "a"), site.read(b, "b"), site.read(offs, "offs")
    target = site.write(out, "out")
    ready = _judged(left.form, right.form, cut.form, target.form, format, epilogue,
                    bool(fast_accumulation))
    rest = _epilogue_addresses(site, ready, epilogue, bias, row_scales, column_scales)
    reports = reports_of(site, ready.problem.groups, statuses, header, check=check, plan=plan)
    if ready.workspace_bytes == 0:
        return out
    with site.use():
        workspace, _lent = site.memory(ready.workspace_bytes)
        enqueue(ready, left.address, right.address, target.address, cut.address, workspace,
                site.stream, reports, rest)
        site.done()
    return out


@lru_cache(maxsize=1024)
def _judged(left: Form, right: Form, cut: Form, target: Form, format: str, epilogue: str,
            fast_accumulation: bool) -> Prepared:
    """Prepares all that follows from forms alone."""
    chosen = choice(epilogue, EPILOGUES, "epilogue")
    left.require("a", OPERANDS)
    right.require("b", OPERANDS)
    if left.dtype != right.dtype:
        raise TypeError(f"a has elements of {left.dtype}, b of {right.dtype}: they must be equal")
    groups, number = offset_count(cut, format)
    steps = [tuple(stride // form.item_bytes for stride in form.strides) for form in (left, right)]
    ready = prepare(left.shape, steps[0], right.shape, steps[1], left.dtype, groups, cut.item_bytes,
                    number)
    target.require("out", ("f16" if left.dtype == "f16" else "bf16",))
    _set_output(ready, target, epilogue)
    if not ready.has_sums:
        raise ValueError("n, k and m are not 0")
    ready.problem.epilogue = chosen
    if fast_accumulation:
        set_fast_accumulation(ready.problem)
    return ready._replace(pieces=_in_pieces(ready.problem)[1])


def _set_output(ready, target, epilogue):
    shape, strides, expected = target.shape, target.strides, ready.out_shape
    if ready.is_turned:
        shape, strides, expected = shape[::-1], strides[::-1], expected[::-1]
    if epilogue == "swiglu":
        expected = (*expected[:-1], expected[-1] // 2)
    if shape != expected or strides[-1] != target.item_bytes:
        product = expected[::-1] if ready.is_turned else expected
        raise ValueError(f"out has the shape {target.shape} and strides {target.strides} in bytes; "
                         f"the product is {product}, its rows without gaps")
    ready.problem.c.pitch_bytes = strides[-2]
    if len(shape) == 3:
        ready.problem.c_group_pitch_bytes = strides[0]


def set_fast_accumulation(problem):
    if problem.operand != OPERANDS.index("f8_e4m3"):
        raise ValueError("fast_accumulation is for operands of f8_e4m3")
    problem.fast_accumulation = 1


def _epilogue_addresses(site, ready, epilogue, bias, row_scales, column_scales):
    problem = ready.problem
    if (epilogue == "bias") != (bias is not None):
        raise ValueError('bias goes with epilogue="bias"')
    if bias is row_scales is column_scales is None:
        return None
    if not isinstance(problem, c.RowProblem):
        raise ValueError("bias and scales are for products whose rows or columns are ragged")
    columns = problem.groups * problem.n
    made = c.RowProblem.from_buffer_copy(problem)
    made.bias = site.optional(bias, "bias", ("bf16", "f16"), columns)
    made.row_scales = site.optional(row_scales, "row_scales", ("f32",), problem.rows)
    made.column_scales = site.optional(column_scales, "column_scales", ("f32",), columns)
    return _in_pieces(made)[1][-1]
