# SPDX-License-Identifier: Apache-2.0
"""Whole layers of experts in one call."""
from ctypes import byref, c_uint64

from . import _structs as c
from ._arrays import Site
from ._batch import call_on, reports_of
from ._epilogue import SCALED_ELEMENTS, gate_of, gate_struct
from ._errors import check as check_call
from ._library import lib
from ._routing import (F32, matrix, most_rows, require_choices, require_device, results_of,
                       routing_of, shaped, some)

_HALVES = ("bf16", "f16")
_OPERANDS, _OF_BF16 = ("bf16", "f16", "f8_e4m3"), ("bf16", "f8_e4m3")  # weights; of tokens of bf16


def layer(x, gate_up, down, logits=None, *, out, ids=None, weights=None, k=None,
          scoring: str = "softmax_then_top_k", bias=None, groups=None, renormalise: bool = False,
          scale: float = 1.0, alignment: int = 1, rows: int = 0, gate="silu", gate_up_bias=None,
          down_bias=None, gate_up_scales=None, down_scales=None, powers_of_two: bool = False,
          base=None, counts=None, begins=None, ends=None, row_of_choice=None, token_of_row=None,
          weight_of_row=None, sorted=None, kept=None, activated=None, sorted_scales=None,
          activated_scales=None, outputs=None, statuses=None, header=None, check=None, stream=None):
    """Runs a layer of experts in one call: it routes the tokens `x` [tokens, width], multiplies the
    rows of each expert by its `gate_up`, applies the gate, multiplies by its `down`, and adds up
    the weighted results of each token in `out` [tokens, width]. `base` [tokens, width], the output
    of a shared expert for example, is added.

    `gate_up` is [experts, 2 * inner, width] and `down` [experts, width, inner], as linear layers
    store them, with lines without gaps. `gate_up_bias` is [experts, 2 * inner] and `down_bias`
    [experts, width]. `gate` is a `tmap.Gate` or the name of its function. All are bf16, or all f16.

    Weights may be f8_e4m3; all else is then bf16. `gate_up_scales` and `down_scales`, f32 with any
    strides, are [experts, lines / 128, elements / 128] of such weights, rounded up. Tokens and the
    results of the gate are rounded to f8_e4m3 with a scale for each 128 elements, a power of two
    if `powers_of_two`. So are `sorted` and `activated`, whose scales, f32, are `sorted_scales`
    [rows, width / 128] and `activated_scales` [rows, inner / 128], rounded up, without gaps.
    `sorted` and `sorted_scales` go together.

    The routing is that of `route`: by `logits` and `k`, or by `ids`. All intermediate results are
    optional: those of `route`, and matrices in the order by expert: `sorted` [rows, width], the
    rows of x; `kept` [rows, 2 * inner], the sums before the gate; `activated` [rows, inner], its
    results; `outputs` [rows, width], those of the experts. Returns `out`. The workspace comes from
    PyTorch or CuPy, by the arrays.
    """
    require_choices(logits, ids, gate_up)
    made = gate_of(gate)
    if made is None:
        raise ValueError("gate is None: a layer's experts have a gate")
    site = Site(stream, x, *some((gate_up, down, logits, out)))
    require_device(site)
    tokens, first, second = _operands_of(site, x, gate_up, down)
    experts, half = first.shape[0], (tokens.dtype,)
    routing = routing_of(site, logits, ids, weights, None if logits is not None else experts, k,
                         scoring, bias, groups, renormalise, scale, alignment, rows)
    if (routing.tokens, routing.experts) != (tokens.shape[0], experts):
        raise ValueError(f"the choices are of {routing.tokens} tokens and {routing.experts} experts, "
                         f"x and gate_up of {tokens.shape[0]} and {experts}")
    problem = c.LayerProblem(operand=_OPERANDS.index(first.dtype), routing=routing,
                             width=tokens.shape[1], inner=second.shape[2], x=matrix(tokens, "x"),
                             gate_up=_weights_of(site, first, "gate_up", gate_up_bias,
                                                 gate_up_scales, half),
                             gate=gate_struct(made),
                             down=_weights_of(site, second, "down", down_bias, down_scales, half),
                             powers_of_two=bool(powers_of_two))
    problem.out = shaped(site.write(out, "out", half), "out", tokens.shape)
    if base is not None:
        problem.base = shaped(site.read(base, "base", half), "base", tokens.shape)
    results = c.LayerResults(
        routed=results_of(site, routing, (None, None) if logits is None else (ids, weights),
                          (counts, begins, ends, row_of_choice, token_of_row, weight_of_row)))
    _set_rows(site, problem, results, half, (first.dtype,), (sorted, kept, activated, outputs),
              (sorted_scales, activated_scales))
    reports = reports_of(site, routing.tokens * routing.k, statuses, header, check=check)
    needed = c_uint64()
    check_call(lib.tmap_moe_layer_workspace_bytes(byref(problem), byref(needed)))
    with site.use():
        memory, _lent = site.memory(needed.value)
        check_call(lib.tmap_moe_layer(byref(problem), byref(results),
                                      call_on(site.stream, memory, needed.value, reports)))
        site.done()
    return out


def _operands_of(site, x, gate_up, down):
    """Reads tokens and both weights, and checks that they fit together."""
    tokens = site.read(x, "x", _HALVES, rank=2)
    first = site.read(gate_up, "gate_up", (tokens.dtype,) if tokens.dtype == "f16" else _OF_BF16,
                      rank=3)
    second = site.read(down, "down", (first.dtype,), rank=3)
    experts, width, inner = first.shape[0], tokens.shape[1], second.shape[2]
    if first.shape != (experts, 2 * inner, width) or second.shape != (experts, width, inner):
        raise ValueError(f"x is {tokens.shape}, gate_up {first.shape} and down {second.shape}: they "
                         "must be [tokens, width], [experts, 2 * inner, width] and "
                         "[experts, width, inner]")
    return tokens, first, second


def _set_rows(site, problem, results, half, operand, matrices, scales):
    """Sets the results in the order by expert. C has those before the gate in the problem."""
    routing, width, inner = problem.routing, problem.width, problem.inner
    rows = routing.rows or most_rows(routing.tokens, routing.experts, routing.k, routing.alignment)
    for array, name, dtypes, columns, owner, member in zip(
            matrices, ("sorted", "kept", "activated", "outputs"), (operand, half, operand, half),
            (width, 2 * inner, inner, width), (results, problem.gate, results, results),
            ("rows", "kept", "activated", "outputs")):
        if array is not None:
            setattr(owner, member, shaped(site.write(array, name, dtypes), name, (rows, columns)))
    for array, name, columns, member in zip(scales, ("sorted_scales", "activated_scales"),
                                            (width, inner), ("row_scales", "activated_scales")):
        elements = rows * -(-columns // SCALED_ELEMENTS)
        setattr(results, member, site.optional(array, name, F32, elements, write=True))


def _weights_of(site, view, name, bias, scales, bias_dtypes) -> c.ExpertWeights:
    experts, lines, elements = view.shape
    group, line, step = view.strides
    if elements > 1 and step != view.item_bytes:
        raise ValueError(f"{name} has gaps inside its lines: call .contiguous() first")
    made = c.ExpertWeights(values=c.Matrix(address=view.address, pitch_bytes=line),
                           group_pitch_bytes=group)
    made.bias = site.optional(bias, f"{name}_bias", bias_dtypes, experts * lines)
    if scales is not None:
        made.scales = _block_scales(site, scales, f"{name}_scales",
                                    (experts, -(-lines // SCALED_ELEMENTS),
                                     -(-elements // SCALED_ELEMENTS)))
    return made


def _block_scales(site, array, name, shape) -> c.BlockScales:
    view = site.read(array, name, F32, rank=3)
    if view.shape != shape:
        raise ValueError(f"{name} is {view.shape}: it must be {shape}")
    group, line, k = (stride // view.item_bytes for stride in view.strides)
    return c.BlockScales(values=view.address, line_stride=line, k_stride=k, group_stride=group,
                         lines=SCALED_ELEMENTS)
