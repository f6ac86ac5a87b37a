# SPDX-License-Identifier: Apache-2.0
"""What a grouped product does to its sums on their way to the output."""
import math
from typing import NamedTuple, Optional, Union

from . import _structs as c
from ._numbers import choice

RESULTS = ("like_operands", "f32", "f8_e4m3")
GATES = ("none", "silu", "gelu", "gelu_tanh")
GATE_COLUMNS = ("halves", "interleaved")
SCALED_RESULTS = 128
# Elements of k, and columns of b, that share a scale.
SCALED_ELEMENTS = 128


class Gate(NamedTuple):
    """Makes one result of two columns: function(gate) * (value + value_shift). `function` is
    "silu" (gate * sigmoid(alpha * gate)), "gelu" or "gelu_tanh". With `columns` "halves" the first
    half of the columns are gates; with "interleaved", even ones are gates and odd ones values.
    Gates are cut to at most `limit`, values to +-limit. A `backward` gate takes gradients of
    results and the kept sums, and makes the gradients of all columns.

    The layer of gpt-oss is Gate("silu", "interleaved", alpha=1.702, limit=7, value_shift=1)."""
    function: str = "silu"
    columns: str = "halves"
    alpha: float = 1.0
    limit: float = math.inf
    value_shift: float = 0.0
    backward: bool = False


def gate_of(gate: Union[None, str, Gate]) -> Optional[Gate]:
    """Takes a gate, the name of its function, or None."""
    made = Gate(gate) if isinstance(gate, str) else gate
    if made is not None and not isinstance(made, Gate):
        raise TypeError(f"gate is a tmap.Gate or a name, not {type(made).__name__}")
    if made is not None:
        choice(made.function, GATES[1:], "gate.function")
        choice(made.columns, GATE_COLUMNS, "gate.columns")
    return made


def result_columns(gate: Optional[Gate], n: int) -> int:
    """Returns the columns of the output of n columns of sums."""
    if gate is None:
        return n
    return 2 * n if gate.backward else n // 2


def result_type(dtype: str) -> int:
    """Returns the number of an output's type."""
    return RESULTS.index(dtype) if dtype in RESULTS else 0


def output_types(operand: str):
    return ("f16" if operand == "f16" else "bf16", "f32", "f8_e4m3")


def set_gate(problem, gate: Optional[Gate]) -> None:
    if gate is None:
        return
    if not isinstance(problem, c.RowProblem):
        raise ValueError("gates are for products whose rows are ragged")
    problem.gate = gate_struct(gate)


def gate_struct(gate: Gate) -> c.Gate:
    if not gate.limit > 0:  # in C, 0 means none
        raise ValueError(f"gate.limit is {gate.limit}: it must be above 0")
    if gate.alpha == 0:  # in C, 0 means 1
        raise ValueError("gate.alpha is 0: that is no gate")
    return c.Gate(function=GATES.index(gate.function), columns=GATE_COLUMNS.index(gate.columns),
                  alpha=gate.alpha, limit=gate.limit, value_shift=gate.value_shift,
                  backward=int(gate.backward))


class Terms(NamedTuple):
    """The arrays of an epilogue."""
    bias: object = None
    kept: object = None
    row_scales: object = None
    column_scales: object = None
    out_scales: object = None
    given_scales: object = None
    a_scales: object = None
    b_scales: object = None
    powers_of_two: bool = False


def with_terms(site, problem, terms: Terms, operand: str):
    """Returns the problem with the addresses of the arrays, or None if there are none."""
    has_scaled_results = getattr(problem, "c_type", 0) == RESULTS.index("f8_e4m3")
    made_scales, given_scales = terms.out_scales is not None, terms.given_scales is not None
    if made_scales and given_scales:
        raise ValueError("out_scales and given_scales exclude each other")
    if has_scaled_results != (made_scales or given_scales):
        raise ValueError("out_scales or given_scales goes with an output of f8_e4m3")
    if given_scales and terms.powers_of_two:
        raise ValueError("powers_of_two is for out_scales: given_scales are read")
    if isinstance(problem, c.WeightProblem) and operand.startswith("f8"):
        return _with_line_scales(site, problem, terms)
    if all(term is None for term in terms[:-1]):
        if isinstance(problem, c.RowProblem) and problem.gate.backward:
            raise ValueError("a backward gate reads kept")
        return None
    if not isinstance(problem, c.RowProblem):
        raise ValueError("bias, scales and kept are for products whose rows are ragged")
    made, columns = c.RowProblem.from_buffer_copy(problem), problem.groups * problem.n
    half = output_types(operand)[:1]
    made.bias = site.optional(terms.bias, "bias", half, columns)
    made.column_scales = site.optional(terms.column_scales, "column_scales", ("f32",), columns)
    if terms.row_scales is not None:
        made.row_scales, made.row_scale_stride = _row_scales(
            site, terms.row_scales, problem.a_row_count or problem.rows)
    if terms.kept is not None:
        made.gate.kept = _kept(site, terms.kept, problem, half)
    elif problem.gate.backward:
        raise ValueError("a backward gate reads kept")
    if has_scaled_results:
        made.c_scales = _scales(site, terms, problem)
    if (terms.a_scales is None) != (terms.b_scales is None):
        raise ValueError("a_scales and b_scales go together")
    if terms.a_scales is not None:
        made.a_scales, made.b_scales = _block_scales(site, terms, problem)
    return made


def block_scale_shapes(rows, k, n, groups):
    """Returns the shapes of the block scales of a and of b."""
    blocks = -(-k // SCALED_ELEMENTS)
    return (rows, blocks), (groups, blocks, -(-n // SCALED_ELEMENTS))


def _block_scales(site, terms, problem):
    shapes = block_scale_shapes(problem.a_row_count or problem.rows, problem.k, problem.n, problem.groups)
    of_a = site.read(terms.a_scales, "a_scales", ("f32",), rank=2)
    of_b = site.read(terms.b_scales, "b_scales", ("f32",), rank=3)
    for name, view, shape in zip(("a_scales", "b_scales"), (of_a, of_b), shapes):
        if view.shape != shape:
            raise ValueError(f"{name} has the shape {view.shape}; it must be {shape}")
    lines, k = (stride // 4 for stride in of_a.strides)
    group, b_k, columns = (stride // 4 for stride in of_b.strides)
    return (c.BlockScales(values=of_a.address, line_stride=lines, k_stride=k, lines=1),
            c.BlockScales(values=of_b.address, line_stride=columns, k_stride=b_k,
                          group_stride=group, lines=SCALED_ELEMENTS))


def _with_line_scales(site, problem, terms):
    """Returns a problem that sums over rows of 8 bits, with the scales that it needs."""
    if any(term is not None for term in (terms.bias, terms.kept, terms.row_scales, terms.column_scales)):
        raise ValueError("bias, factors and kept are for products whose rows are ragged")
    if terms.a_scales is None or terms.b_scales is None:
        raise ValueError("sums over rows of 8 bits need a_scales and b_scales")
    of_a = site.read(terms.a_scales, "a_scales", ("f32",), rank=2)
    of_b = site.read(terms.b_scales, "b_scales", ("f32",), rank=2)
    joined, apart = -(-problem.rows // SCALED_ELEMENTS), problem.rows // SCALED_ELEMENTS + problem.groups
    blocks = of_a.shape[1]
    if blocks not in (joined, apart):
        raise ValueError(f"a_scales has {blocks} columns; it must have {apart}, or {joined} if all groups begin at "
                         f"multiples of {SCALED_ELEMENTS}")
    made = c.WeightProblem.from_buffer_copy(problem)
    for name, view, shape, k_axis in (("a_scales", of_a, (problem.m, blocks), 1),
                                      ("b_scales", of_b, (blocks, problem.n), 0)):
        if view.shape != shape:
            raise ValueError(f"{name} has the shape {view.shape}; it must be {shape}")
        k_stride = view.strides[k_axis] // 4
        setattr(made, name, c.BlockScales(values=view.address, line_stride=view.strides[1 - k_axis] // 4, lines=1,
                                          k_stride=k_stride, group_stride=0 if blocks == joined else k_stride))
    return made


def _row_scales(site, array, rows):
    view = site.read(array, "row_scales", ("f32",))
    extents = [(extent, stride) for extent, stride in zip(view.shape, view.strides) if extent != 1]
    if math.prod(view.shape) < rows or len(extents) > 1:
        raise ValueError(f"row_scales has the shape {view.shape}: it must hold {rows} elements in "
                         "one dim")
    if extents and extents[0][1] == 0:  # in C, 0 means 1
        raise ValueError("row_scales repeats an element by a stride of 0: copy it first")
    return view.address, extents[0][1] // 4 if extents else 1


def _kept(site, array, problem, dtypes):
    if problem.gate.function == 0:
        raise ValueError("kept goes with a gate")
    view = (site.read if problem.gate.backward else site.write)(array, "kept", dtypes, rank=2)
    shape, strides = view.shape, view.strides
    expected = (problem.rows, 2 * problem.n if problem.gate.backward else problem.n)
    if shape != expected or strides[1] != view.item_bytes:
        raise ValueError(f"kept has the shape {shape} and strides {strides} in bytes; it must be "
                         f"{expected}, its rows without gaps")
    return c.Matrix(address=view.address, pitch_bytes=strides[0])


def _scales(site, terms, problem):
    columns = problem.n // 2 if problem.gate.function else problem.n
    expected = (problem.rows, -(-columns // SCALED_RESULTS))
    if terms.given_scales is not None:
        return _given_scales(site, terms.given_scales, expected)
    view = site.write(terms.out_scales, "out_scales", ("f32",), rank=2)
    if view.shape != expected:
        raise ValueError(f"out_scales has the shape {view.shape}; it must be {expected}")
    row, column = (stride // 4 for stride in view.strides)
    return c.ResultScales(values=view.address, row_stride=row, column_stride=column,
                          are_powers_of_two=int(terms.powers_of_two))


def _given_scales(site, array, expected):
    view = site.read(array, "given_scales", ("f32",), rank=2)
    if any(extent not in (1, whole) for extent, whole in zip(view.shape, expected)):
        raise ValueError(f"given_scales has the shape {view.shape}; it must be {expected}, or have 1 in place of "
                         "either")
    row, column = (0 if extent == 1 else stride // 4 for extent, stride in zip(view.shape, view.strides))
    return c.ResultScales(values=view.address, row_stride=row, column_stride=column, are_given=1)
