# SPDX-License-Identifier: Apache-2.0
"""The problem that a grouped product hands to the library: all of it that follows from shapes and
strides, and the call."""
import ctypes
from ctypes import byref
from typing import Any, NamedTuple, Tuple

from . import _structs as c
from ._batch import PLAIN, ROW_FORMATS, call_on
from ._epilogue import result_type
from ._errors import check
from ._library import lib
from ._numbers import integer

OPERANDS = ("bf16", "f16", "f8_e4m3", "f8_e5m2")
# Of 8 bits; b is e4m3 with either.
EIGHT_BITS = OPERANDS[2:]
# Of both operands: lines along k, and lines across it.
_ALONG, _ACROSS = 0, 1
# The formats of `offs`, in the library's order.
FORMATS = (*ROW_FORMATS, "slots", "labels")
SLOTS, LABELS = FORMATS.index("slots"), FORMATS.index("labels")


class Prepared(NamedTuple):
    """All of a product but its addresses."""
    function: Any  # of the library
    problem: Any  # RowProblem, ColumnProblem or WeightProblem, which nobody changes any more
    pack: Any  # joins the pieces and the addresses of offs, a, b, out to its bytes
    pieces: Tuple[bytes, ...]
    out_shape: Tuple[int, ...]
    out_strides: Tuple[int, ...]  # in elements, of an output without gaps
    has_sums: bool  # False: nothing to sum over, or no column
    runs_along: bool  # lines of an operand run along the ragged dim, so groups begin at 16-byte units
    workspace_bytes: int  # 0: nothing to do


def _check_units(item, **extents):
    for name, extent in extents.items():
        if extent * item % 16:
            raise ValueError(f"{name} is {extent}: its elements must take a multiple of 16 bytes")


def _check_k(a_k, b_k):
    if a_k != b_k:
        raise ValueError(f"a has rows of {a_k} elements, but b has columns of {b_k}: they must be "
                         "equal")


def _lines_of(name, shape, strides, k_axis):
    """Returns the layout of an operand's matrix, and the elements from one line to the next.
    `k_axis` is 0 or 1, the axis of k among the last two."""
    last = len(shape) - 1
    # The step of a dim of one element may be anything, so a longer dim comes first.
    for inner in sorted((last, last - 1), key=lambda axis: shape[axis] == 1):
        if strides[inner] == 1 or shape[inner] == 1:
            outer = 2 * last - 1 - inner
            pitch = strides[outer] if shape[outer] > 1 else max(shape[inner], 1)
            return _ALONG if inner == last - 1 + k_axis else _ACROSS, pitch
    raise ValueError(f"one of the last two strides of {name} must be 1: call .contiguous() first")


def _rows(a, b, groups, operand, item):
    (rows, k), (b_groups, b_k, n) = a.shape, b.shape
    _check_k(k, b_k)
    _check_units(item, k=k)
    problem = c.RowProblem(operand=OPERANDS.index(operand), groups=groups, rows=rows, n=n, k=k,
                           b_group_pitch_bytes=b.strides[0] * item)
    return problem, (rows, n), k > 0 and n > 0


def _columns(a, b, groups, operand, item):
    (a_groups, m, k), (b_k, columns) = a.shape, b.shape
    _check_k(k, b_k)
    _check_units(item, k=k)
    problem = c.ColumnProblem(operand=OPERANDS.index(operand), groups=groups, columns=columns, m=m,
                              k=k, a_group_pitch_bytes=a.strides[0] * item)
    return problem, (m, columns), k > 0 and m > 0


def _weights(a, b, groups, operand, item):
    (m, k), (b_k, n) = a.shape, b.shape
    _check_k(k, b_k)
    problem = c.WeightProblem(operand=OPERANDS.index(operand), groups=groups, rows=k, m=m, n=n)
    return problem, (groups, m, n), m > 0 and n > 0


class Operand(NamedTuple):
    """Strides count elements."""
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]


def _joined_slots(a):
    """Returns [groups, slot, k] as rows, which slots follow each other in."""
    groups, slot, k = a.shape
    if groups > 1 and slot > 0 and a.strides[0] != slot * a.strides[1]:
        raise ValueError("the slots of a follow each other: its first stride must be the second, "
                         f"{a.strides[1]}, times {slot}, not {a.strides[0]}")
    return Operand((groups * slot, k), a.strides[1:])


# By the dims of the operands: the problem, and the operand with groups.
_FORMS = {(2, 3): (_rows, 1), (3, 2): (_columns, 0), (2, 2): (_weights, None)}


def prepare(a_shape, a_strides, b_shape, b_strides, operand: str, groups: int, offset_bytes: int,
            format: int, c_item: int = 2) -> Prepared:
    """Prepares a product of shapes and strides (in elements), with an output of elements of
    `c_item` bytes. Raises ValueError for what no grouped product does."""
    item, groups = 1 if operand in EIGHT_BITS else 2, integer(groups, "the number of groups", 32)
    a, b = Operand(tuple(a_shape), tuple(a_strides)), Operand(tuple(b_shape), tuple(b_strides))
    slots = a.shape[1] if format == SLOTS and len(a.shape) == len(b.shape) == 3 else 0
    if slots:
        a = _joined_slots(a)
    ranks = len(a.shape), len(b.shape)
    if ranks == (3, 3):
        raise ValueError("both operands have groups and no dim is ragged: that is a batched "
                         "product (torch.bmm), or rows in slots (format slots)")
    if ranks not in _FORMS:
        raise ValueError(f"operands have 2 or 3 dims, not {ranks[0]} and {ranks[1]}")
    make, grouped = _FORMS[ranks]
    if grouped is not None and (a, b)[grouped].shape[0] != groups:
        raise ValueError(f"offs cuts {groups} groups, the operand with groups has "
                         f"{(a, b)[grouped].shape[0]}")
    if operand in EIGHT_BITS and make is _columns:
        raise ValueError("products of groups of columns are of bf16 and f16")
    problem, out, has_sums = make(a, b, groups, operand, item)
    problem.a_layout, a_pitch = _lines_of("a", a.shape, a.strides, 1)
    problem.b_layout, b_pitch = _lines_of("b", b.shape, b.strides, 0)
    if operand in EIGHT_BITS and (problem.a_layout, problem.b_layout) != (_ALONG, _ALONG):
        raise ValueError("8-bit operands are read along k: give a as it is, and b as "
                         "b_n_by_k.transpose(-2, -1)")
    if not isinstance(problem, c.ColumnProblem):
        _check_units(min(item, c_item) if problem.b_layout == _ACROSS else c_item, n=problem.n)
    problem.a.pitch_bytes, problem.b.pitch_bytes = a_pitch * item, b_pitch * item
    problem.offsets.format, problem.offsets.bytes = format, offset_bytes
    problem.offsets.slot_rows = slots
    # Lines of the output begin at multiples of 16 bytes.
    unit = 16 // c_item
    pitch = -(-out[-1] // unit) * unit
    problem.c.pitch_bytes = pitch * c_item
    strides = (pitch, 1)
    if len(out) == 3:
        strides = (out[1] * pitch, pitch, 1)
        problem.c_group_pitch_bytes = strides[0] * c_item
    elif slots:
        out, strides = (groups, slots, out[1]), (slots * pitch, pitch, 1)
    return Prepared(getattr(lib, _FUNCTIONS[type(problem)]), problem, *in_pieces(problem), out,
                    strides, has_sums, _runs_along(problem), workspace_bytes(groups) if has_sums else 0)


def _runs_along(problem) -> bool:
    if isinstance(problem, c.RowProblem):
        return problem.a_layout == _ACROSS
    if isinstance(problem, c.ColumnProblem):
        return problem.b_layout == _ACROSS
    return _ALONG in (problem.a_layout, problem.b_layout)


_FUNCTIONS = {c.RowProblem: "tmap_gemm_rows", c.ColumnProblem: "tmap_gemm_columns",
              c.WeightProblem: "tmap_gemm_weights"}


def in_pieces(problem):
    return c.in_pieces(problem,
                       *(c.place((type(problem), name)) for name in ("offsets", "a", "b", "c")))


def workspace_bytes(groups: int) -> int:
    needed = ctypes.c_uint64()
    check(lib.tmap_gemm_workspace_bytes(groups, byref(needed)))
    return needed.value


def enqueue(ready: Prepared, a: int, b: int, out: int, offs: int, workspace: int, stream: int,
            reports: bytes = PLAIN, pieces: Tuple[bytes, ...] = None) -> None:
    """Enqueues a product. `pieces` replaces those of the prepared problem."""
    first, second, third, fourth, last = pieces or ready.pieces
    problem = ready.pack(first, offs, second, a, third, b, fourth, out, last)
    check(ready.function(problem, call_on(stream, workspace, ready.workspace_bytes, reports)))


def with_wide_results(ready: Prepared) -> Prepared:
    """Returns the same product with results of f32."""
    ready.problem.c_type = result_type("f32")
    return ready._replace(pieces=in_pieces(ready.problem)[1])


def with_zeroed_rest(ready: Prepared) -> Prepared:
    """Returns the same product, of groups of rows or of sums over rows, with zeros where no good
    group writes."""
    ready.problem.zero_rest = 1
    return ready._replace(pieces=in_pieces(ready.problem)[1])


def pieces_with_bias(ready: Prepared, bias: int) -> Tuple[bytes, ...]:
    """Returns the pieces of a problem with groups of rows, and a bias at an address."""
    made = c.RowProblem.from_buffer_copy(ready.problem)
    made.bias = bias
    return in_pieces(made)[1]
