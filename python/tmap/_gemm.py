# SPDX-License-Identifier: Apache-2.0
"""Grouped products: many matrix products of different sizes in one call."""
import enum
from functools import lru_cache
from typing import Optional, Tuple

from . import _structs as c
from ._arrays import WORDS, Site
from ._batch import counts_address, offset_count, reports_of, split_offsets
from ._epilogue import (Gate, Terms, gate_of, output_types, result_columns, result_type, set_gate,
                        with_terms)
from ._gemm_problem import FORMATS, LABELS, OPERANDS, Prepared, enqueue, in_pieces, prepare
from ._libraries import Form
from ._numbers import choice, sequence, status_bits


class GroupFault(enum.IntFlag):
    """The bits of a status: why a group was bad. `EMPTY` is no fault. `EXTENT` and `PITCH` belong
    to products by pointers, `ADDRESS` to lists of addresses. No group has `LABEL`, the fault of a
    row whose label names no group, or `A_ROW` or `C_ROW`, of one whose row of a or of out does not
    exist: `tmap.faults` counts them. `explain` puts them into words."""
    ROWS = 1 << 0
    EXTENT = 1 << 1
    ADDRESS = 1 << 2
    PITCH = 1 << 3
    LABEL = 1 << 4
    ALIGNMENT = 1 << 5
    A_ROW = 1 << 6
    C_ROW = 1 << 7
    EMPTY = 1 << 31


def group_faults_of(status) -> GroupFault:
    """Names the bits in an element of `statuses`, of uint32 or int32: `GroupFault(0)` for a good
    group."""
    return GroupFault(status_bits(status))


def grouped_mm(a, b, offs, *, out, format: str = "ends", accumulate: bool = False, bias=None,
               gate=None, kept=None, row_scales=None, column_scales=None, out_scales=None,
               given_scales=None, a_scales=None, b_scales=None, powers_of_two: bool = False,
               fast_accumulation: bool = False, b_addresses=None, out_addresses=None, a_rows=None,
               out_rows=None, pending=None, statuses=None, header=None, plan: int = None,
               blocks: int = None, check=None, stream=None):
    """Computes many products in one call, of arrays of any library in device memory. The sizes may
    exist only there.

    | a | b | ragged | out |
    |---|---|---|---|
    | [rows, k] | [groups, k, n] | rows of a | [rows, n] |
    | [groups, m, k] | [k, columns] | columns of b | [m, columns] |
    | [m, k] | [k, n] | what is summed over | [groups, m, n] |
    | [groups, slot, k] | [groups, k, n] | rows in slots (format "slots") | [groups, slot, n] |

    Operands may be row-major or column-major. `offs`, int32 or int64 in device memory, cuts the
    ragged dim by its `format`:

    | format | offs |
    |---|---|
    | "ends", "prefix", "sizes" | of groups that follow each other |
    | "begins_and_counts" | a pair (begins, counts): groups in any order, with gaps |
    | "slots" | counts: group i has counts[i] rows of slot i |
    | "labels" | the group of each row, or -1 |

    Types are bf16, f16 and, except for groups of columns, f8_e4m3 and f8_e5m2 times f8_e4m3 (b is
    stored [groups, n, k], or [n, k]). out has the operands' type (bf16 for those of 8 bits), or
    f32, or, where rows are ragged, f8_e4m3. Products of groups of columns have the operands' type.
    Addresses and pitches are multiples of 16 bytes, and so are rows of n and k elements. Rows of
    out that belong to no group stay as they are.

    `b_addresses`, uint64 or int64 [groups], is for weights that are separate arrays: `b` is then
    one of them, [k, n], and all have its strides. In the same way `out_addresses` names an output
    for each group: its rows, or its [m, n]. `out` is then one of them, of the largest size.

    Sums are changed in this order, all but the last only where rows are ragged: `row_scales` [rows]
    (which may have gaps) and `column_scales` [groups, n] are f32 factors; `bias` [groups, n] is
    added; `gate`, a `tmap.Gate` or the name of its function, makes n / 2 columns of n, after `kept`
    [rows, n] has got the sums; `accumulate` adds to the content of out, of f32 or 16 bits.
    `out_scales`, f32 [rows, n / 128 rounded up] with any strides, gets the scales of an out of
    f8_e4m3, rounded up to powers of two if `powers_of_two`. `given_scales` in its place is read:
    f32 of the same shape, [rows, 1] or [1, 1].

    `a_rows`, int32 [rows], names the row of `a` that each row of the product reads, so that no
    sorted copy is needed: `a` then has any number of rows, and `row_scales` and `a_scales` have
    theirs. With "slots" it is [groups, slot]. -1 reads zeros. So does a number that is no row of
    `a`, and `tmap.faults` counts it.

    `out_rows`, int32 [rows], names the row of `out` that each row of the product is stored in:
    `out` then has any number of rows, and those that no row names stay as they are. -1 stores
    nothing. So does a number that is no row of `out`, and `tmap.faults` counts it. Rows of groups
    name different rows. Only with `accumulate` to f32 may several name the same: two that are added
    to zeros give the same bits in any order, more may not. It goes with weights stored [groups, n,
    k], of bf16, f16 or f8_e4m3, and with an `out` of 16 bits or f32, but not with `a_rows`,
    `out_addresses` or `fast_accumulation`.

    `a_scales`, f32 [rows of a, k / 128], and `b_scales`, f32 [groups, k / 128, n / 128], rounded
    up, are block scales of operands of 8 bits: each of 128 elements of k, of a row of a or of 128
    columns of b. Their strides may be any.

    Sums over ragged rows of 8 bits need both scales: `a_scales` [m, blocks] and `b_scales` [blocks,
    n], each of 128 rows of a line, where n is contiguous. Groups begin at multiples of 16. If all
    begin at multiples of 128, blocks are k / 128, rounded up. Else blocks are k / 128, rounded
    down, + groups. Those of group g, which begins at row r, are then r / 128 + g and the next.

    `pending`, uint32 or int32 [groups + 1], lets the product of ragged rows begin while a
    `tmap.peer.dispatch` brings them. Launch that first, and let `stream` wait for its `ready`.
    Nothing ends a wait for words that no dispatch raises. It does not go with `a_rows`. `blocks`,
    at least 2, bounds how many multiprocessors compute tiles: by default all.

    `fast_accumulation`, of f8_e4m3 without block scales only, sums up in the tensor cores, to 13
    bits, instead of f32 (docs/grouped_gemm.md). `statuses`, uint32 [groups], and `header`, uint32
    [4], get the fate of each group on the device (`group_faults_of`, docs/grouped_gemm.md). `check`
    is as in `tmap.ragged`. The workspace comes from PyTorch or CuPy, by the arrays.

    Does not wait for the device unless it is checked; a graph may capture it. Returns `out`. Raises
    `TypeError`, `ValueError`, `Error`.
    """
    counts, offs = split_offsets(offs, format, "offs")
    site = Site(stream, a, b, offs, out)
    if site.on_host:
        raise ValueError("grouped products are of arrays in device memory")
    left, right, cut = site.read(a, "a"), site.read(b, "b"), site.read(offs, "offs")
    target = site.write(out, "out")
    lists = _Lists(site, b_addresses, out_addresses, a_rows, out_rows, pending)
    ready = _judged(left.form, right.form, cut.form, target.form, format, gate_of(gate),
                    bool(accumulate), bool(fast_accumulation), *lists.lengths, lists.index, lists.targets)
    pieces = _with_addresses(site, ready, left.dtype, counts, lists,
                             Terms(bias, kept, row_scales, column_scales, out_scales, given_scales,
                                   a_scales, b_scales, powers_of_two))
    reports = reports_of(site, ready.problem.groups, statuses, header, check=check, plan=plan,
                         blocks=blocks)
    if ready.workspace_bytes == 0:
        return out
    with site.use():
        workspace, _lent = site.memory(ready.workspace_bytes)
        enqueue(ready, left.address, right.address, target.address, cut.address, workspace,
                site.stream, reports, pieces)
        site.done()
    return out


class _Lists:
    """Addresses of matrices that lie apart, the rows of a and of out in the order of the product,
    and the words of rows that still come."""

    def __init__(self, site, b, out, a_rows, out_rows, pending):
        views = [None if array is None else site.read(array, name, ("u64", "i64"), rank=1)
                 for array, name in ((b, "b_addresses"), (out, "out_addresses"))]
        for view in views:
            if view is not None and not view.is_packed:
                raise ValueError("lists of addresses have no gaps")
        self.b, self.out = (0 if view is None else view.address for view in views)
        self.lengths = [None if view is None else view.shape[0] for view in views]
        self.a_rows, self.index = self._read_index(site, a_rows, "a_rows")
        self.out_rows, self.targets = self._read_index(site, out_rows, "out_rows")
        self.pending = pending

    @staticmethod
    def _read_index(site, array, name):
        """Returns the address and the shape of an index, or 0 and None."""
        if array is None:
            return 0, None
        view = site.read(array, name, ("i32",))
        if not view.is_packed:
            raise ValueError(f"{name} has no gaps")
        return view.address, view.shape

    def __bool__(self):
        return any((self.b, self.out, self.a_rows, self.out_rows, self.pending is not None))


def _group_count(cut, number, right, left, target, b_count):
    """Returns how many groups there are, where `offs` has the rows' labels."""
    if number != LABELS:
        return offset_count(cut, FORMATS[number], FORMATS)[0]
    offset_count(cut, "labels", FORMATS)
    if b_count is not None:
        return b_count
    grouped = {(2, 3): right, (3, 2): left}.get((len(left.shape), len(right.shape)), target)
    return grouped.shape[0]


@lru_cache(maxsize=1024)
def _judged(left: Form, right: Form, cut: Form, target: Form, format: str, gate: Optional[Gate],
            accumulate: bool, fast_accumulation: bool, b_count: int = None,
            out_count: int = None, index: Optional[Tuple[int, ...]] = None,
            targets: Optional[Tuple[int, ...]] = None) -> Prepared:
    """Prepares all that follows from forms alone."""
    number = choice(format, FORMATS, "format")
    left.require("a", OPERANDS)
    right.require("b", OPERANDS[:3])
    if left.dtype != right.dtype and (left.dtype, right.dtype) != ("f8_e5m2", "f8_e4m3"):
        raise TypeError(f"a has elements of {left.dtype}, b of {right.dtype}: they must be equal")
    groups = _group_count(cut, number, right, left, target, b_count)
    steps = [tuple(stride // form.item_bytes for stride in form.strides) for form in (left, right)]
    left_shape, shape = left.shape, right.shape
    if index is not None:
        left_shape, steps[0] = _gathered(left_shape, steps[0], index)
    if b_count is not None:
        if len(shape) != 2 or len(left_shape) != 2:
            raise ValueError("with b_addresses, a is [rows, k] and b one matrix [k, n]")
        shape, steps[1] = (b_count, *shape), (0, *steps[1])
    target.require("out", output_types(left.dtype))
    ready = prepare(left_shape, steps[0], shape, steps[1], left.dtype, groups, cut.item_bytes,
                    number, target.item_bytes)
    if index is not None:
        _set_index(ready.problem, left.shape[0])
    _set_results(ready.problem, target.dtype, gate, accumulate)
    if targets is not None:
        _set_targets(ready.problem, target, targets, out_count)
    _set_output(ready, target, gate, out_count)
    if not ready.has_sums:
        raise ValueError("n, k and m are not 0")
    if fast_accumulation:
        set_fast_accumulation(ready.problem)
    return ready._replace(pieces=in_pieces(ready.problem)[1])


def _gathered(shape, steps, index):
    """Returns the shape and the strides of a's rows in the order of the index, as far as they have
    any."""
    if len(shape) != 2 or len(index) not in (1, 2):
        raise ValueError(f"with a_rows, a is [rows of a, k] and a_rows [rows] or, with slots, [groups, "
                         f"slot], not {shape} and {index}")
    if shape[0] == 1:  # the step of a dim of one element may be anything
        steps = (max(steps[0], shape[1]), steps[1])
    outer = (index[1] * steps[0],) if len(index) == 2 else ()
    return (*index, shape[1]), (*outer, *steps)


def _set_index(problem, rows):
    if not isinstance(problem, c.RowProblem):
        raise ValueError("a_rows is for products whose rows are ragged")
    problem.a_row_count = rows


def _set_targets(problem, target, targets, out_count):
    if not isinstance(problem, c.RowProblem) or out_count is not None:
        raise ValueError("out_rows is for products whose rows are ragged, with one out")
    if len(targets) != 1 or targets[0] != problem.rows or len(target.shape) != 2:
        raise ValueError(f"with out_rows, out is [rows of out, n] and out_rows [{problem.rows}], not "
                         f"{target.shape} and {targets}")
    problem.c_row_count = target.shape[0]


def _set_results(problem, dtype, gate, accumulate):
    if isinstance(problem, c.ColumnProblem):
        if gate is not None or accumulate or result_type(dtype) != 0:
            raise ValueError("products of groups of columns are of their operands' type, and have "
                             "no gate and no accumulation")
        return
    problem.c_type = result_type(dtype)
    set_gate(problem, gate)
    problem.accumulate = int(accumulate)


def _set_output(ready, target, gate, out_count):
    shape, strides, expected, problem = target.shape, target.strides, ready.out_shape, ready.problem
    expected = (*expected[:-1], result_columns(gate, expected[-1]))
    if out_count is not None:
        if out_count != problem.groups or isinstance(problem, c.ColumnProblem):
            raise ValueError("out_addresses has an address for each group, of rows or of sums over "
                             f"rows: {problem.groups}, not {out_count}")
        expected = (shape[0], expected[-1]) if isinstance(problem, c.RowProblem) else expected[1:]
    if isinstance(problem, c.RowProblem) and problem.c_row_count:
        expected = (problem.c_row_count, expected[-1])
    if shape != expected or strides[-1] != target.item_bytes:
        raise ValueError(f"out has the shape {shape} and strides {strides} in bytes; the product is "
                         f"{expected}, its rows without gaps")
    problem.c.pitch_bytes = strides[-2]
    if len(shape) == 3 and isinstance(problem, c.WeightProblem):
        problem.c_group_pitch_bytes = strides[0]
    elif len(shape) == 3 and shape[0] > 1 and strides[0] != shape[1] * strides[1]:
        raise ValueError("the slots of out follow each other")


def set_fast_accumulation(problem):
    if problem.operand != OPERANDS.index("f8_e4m3"):
        raise ValueError("fast_accumulation is for operands of f8_e4m3")
    problem.fast_accumulation = 1


def _with_addresses(site, ready, operand, counts, lists, terms):
    """Returns the pieces of a problem with more addresses than the prepared one has, or None."""
    made = with_terms(site, ready.problem, terms, operand)
    if made is None and counts is None and not lists:
        return None
    if made is None:
        made = type(ready.problem).from_buffer_copy(ready.problem)
    if counts is not None:
        made.offsets.counts = counts_address(site, counts, made.groups, made.offsets.bytes, "offs")
    if lists.a_rows:
        made.a_rows = lists.a_rows
    if lists.out_rows:
        made.c_rows = lists.out_rows
    if lists.pending is not None:
        if not isinstance(made, c.RowProblem):
            raise ValueError("pending is for products whose rows are ragged")
        made.pending = site.optional(lists.pending, "pending", WORDS, made.groups + 1)
    if lists.b:
        made.b_addresses = lists.b
    if lists.out:
        made.c_addresses = lists.out
    return in_pieces(made)[1]
