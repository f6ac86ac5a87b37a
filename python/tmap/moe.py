# SPDX-License-Identifier: Apache-2.0
"""Layers of experts (docs/experts.md): `layer` runs a whole one. `route` is what comes before the
products of the experts, `combine` what comes after them, and `combine_backward` computes the
gradients of `combine`.

Choice t * k + j is the j-th expert of token t. A row is a place in the order by expert. Arrays are
in device memory, of any library that speaks DLPack. Each function writes into arrays of the caller,
on `stream`: None is the current stream of PyTorch or CuPy. It does not wait for the device unless
it is checked, and a graph may capture it. A choice of -1 is skipped. A bad choice is skipped, too,
and reported. The functions take these keywords:

statuses   uint32 or int32 [tokens, k], gets for each choice 0 (good), bit 31 (skipped: -1) or why
           it was bad: `faults_of` names the bits.
header     uint32 or int32 [4], gets how many choices were bad, the first of them, how many were -1,
           and 0.
check      "sync", "off" or None, which stands for TMAP_CHECK. A checked call waits, and raises
           `Error` if a choice was bad, after all others are done.

They raise `TypeError`, `ValueError` and `Error` and have then changed nothing, except for a checked
call that found bad choices.
"""
import enum
from ctypes import byref, c_uint64
from typing import NamedTuple

from . import _structs as c
from ._arrays import Site
from ._batch import call_on, reports_of
from ._epilogue import SCALED_ELEMENTS, gate_of, gate_struct
from ._errors import check as check_call
from ._library import lib
from ._numbers import choice, integer, real, status_bits

__all__ = ["Fault", "Groups", "combine", "combine_backward", "faults_of", "layer", "most_rows",
           "route"]

FLOATS = ("f32", "bf16", "f16")
SCORINGS = ("softmax_then_top_k", "top_k_then_softmax", "sigmoid")
GROUP_SCORES = ("largest", "sum_of_two_largest")
_IDS, _I32, _F32, _HALVES = ("i32", "i64"), ("i32",), ("f32",), ("bf16", "f16")
_OPERANDS, _OF_BF16 = ("bf16", "f16", "f8_e4m3"), ("bf16", "f8_e4m3")  # weights; of tokens of bf16


def __dir__():
    return __all__


class Fault(enum.IntFlag):
    """The bits of a status: why a choice was bad. `EMPTY` is no fault."""
    ROW = 1 << 7
    EXPERT = 1 << 8
    CAPACITY = 1 << 9
    EMPTY = 1 << 31


def faults_of(status) -> Fault:
    """Names the bits in an element of `statuses`, of uint32 or int32: `Fault(0)` for a good
    choice."""
    return Fault(status_bits(status))


class Groups(NamedTuple):
    """Limits the choice to the experts of the `chosen` best of `count` groups. `score` is "largest"
    or "sum_of_two_largest", of a group's scores."""
    count: int
    chosen: int
    score: str = "largest"


def most_rows(tokens: int, experts: int, k: int, alignment: int = 1) -> int:
    """Returns the rows that are enough for any choices."""
    if integer(alignment, "alignment", 32) == 0:
        raise ValueError("alignment is 0: it must be a power of two")
    return lib.tmap_moe_most_rows(integer(tokens, "tokens", 30), integer(experts, "experts", 32),
                                  integer(k, "k", 32), alignment)


def route(logits=None, *, ids=None, weights=None, experts=None, k=None,
          scoring: str = "softmax_then_top_k", bias=None, groups=None, renormalise: bool = False,
          scale: float = 1.0, alignment: int = 1, rows: int = 0, counts=None, begins=None, ends=None,
          row_of_choice=None, token_of_row=None, weight_of_row=None, statuses=None, header=None,
          check=None, stream=None) -> None:
    """Chooses the experts of each token and sorts the choices by expert.

    With `logits` [tokens, experts], f32, bf16 or f16, it chooses k experts for each token, and
    writes `ids`, int32 [tokens, k], and `weights`, f32 [tokens, k]. `scoring` is
    "softmax_then_top_k", "top_k_then_softmax" or "sigmoid". With "sigmoid", `bias`, f32 [experts],
    changes the choice. `groups` is a `Groups`. `renormalise` divides the weights of a token by
    their sum, and `scale` multiplies them.

    Without logits it reads `ids`, int32 or int64 [tokens, k], of so many `experts`, and `weights`,
    which are 1 if there are none.

    All results are optional: `counts` [experts], `begins` [experts + 1] and `ends` [experts] of the
    rows of each expert, `row_of_choice` [tokens, k], `token_of_row` [rows], all int32, and
    `weight_of_row`, f32 [rows]. Rows without a choice get -1 and 0; so do choices without a row.
    Each expert begins at a multiple of `alignment`. `rows` 0 stands for `most_rows(...)`. The
    workspace comes from PyTorch or CuPy, by the arrays.
    """
    _require_choices(logits, ids, experts)
    site = Site(stream, *_some((logits, ids, weights, bias, counts, begins, ends, row_of_choice,
                                token_of_row, weight_of_row)))
    _require_device(site)
    problem = _routing(site, logits, ids, weights, experts, k, scoring, bias, groups, renormalise,
                       scale, alignment, rows)
    choices = problem.tokens * problem.k
    results = _results(site, problem, (None, None) if logits is None else (ids, weights),
                       (counts, begins, ends, row_of_choice, token_of_row, weight_of_row))
    reports = reports_of(site, choices, statuses, header, check=check)
    needed = c_uint64()
    check_call(lib.tmap_moe_workspace_bytes(byref(problem), byref(needed)))
    with site.use():
        memory, _lent = site.memory(needed.value) if needed.value else (0, None)
        check_call(lib.tmap_moe_route(byref(problem), byref(results),
                                      call_on(site.stream, memory, needed.value, reports)))
        site.done()


def combine(values, row_of_choice, *, out, weights=None, base=None, statuses=None, header=None,
            check=None, stream=None):
    """out[t] = base[t] + the sum over j of weights[t, j] * values[row_of_choice[t, j]].

    `values` [rows, columns], `out` and `base` [tokens, columns] have one type, f32, bf16 or f16.
    Their rows begin at multiples of 16 bytes and have a multiple of 16 bytes. `row_of_choice` is
    int32 [tokens, k]; -1 adds nothing. `weights`, f32 [tokens, k], are 1 if there are none. Without
    `base` the sums begin at 0; it may be `out`. Sums are in f32, in the order of j, and do not
    depend on other tokens. Returns `out`.
    """
    site = Site(stream, *_some((values, row_of_choice, out, weights, base)))
    _require_device(site)
    source = site.read(values, "values", FLOATS, rank=2)
    target = site.write(out, "out", (source.dtype,), rank=2)
    index = _packed(site.read(row_of_choice, "row_of_choice", _I32, rank=2), "row_of_choice")
    tokens, columns = target.shape
    if source.shape[1] != columns or index.shape[0] != tokens:
        raise ValueError(f"out is {target.shape}, values {source.shape} and row_of_choice "
                         f"{index.shape}: they must be [tokens, columns], [rows, columns] and "
                         "[tokens, k]")
    problem = c.CombineProblem(tokens=tokens, columns=columns, rows=source.shape[0],
                               k=integer(index.shape[1], "k", 32),
                               row_type=FLOATS.index(source.dtype), row_of_choice=index.address,
                               values=_matrix(source, "values"), out=_matrix(target, "out"))
    problem.weights = site.optional(weights, "weights", _F32, tokens * problem.k)
    if base is not None:
        first = site.read(base, "base", (source.dtype,), rank=2)
        if first.shape != target.shape:
            raise ValueError(f"base is {first.shape}: it must be {target.shape}, as out is")
        problem.base = _matrix(first, "base")
    reports = reports_of(site, tokens * problem.k, statuses, header, check=check)
    with site.use():
        check_call(lib.tmap_moe_combine(byref(problem), call_on(site.stream, reports=reports)))
        site.done()
    return out


def layer(x, gate_up, down, logits=None, *, out, ids=None, weights=None, k=None,
          scoring: str = "softmax_then_top_k", bias=None, groups=None, renormalise: bool = False,
          scale: float = 1.0, alignment: int = 1, rows: int = 0, gate="silu", gate_up_bias=None,
          down_bias=None, gate_up_scales=None, down_scales=None, powers_of_two: bool = False, base=None, counts=None, begins=None, ends=None, row_of_choice=None,
          token_of_row=None, weight_of_row=None, sorted=None, kept=None, activated=None,
          sorted_scales=None, activated_scales=None, outputs=None, statuses=None, header=None,
          check=None, stream=None):
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

    The routing is that of `route`: by `logits` and `k`, or by `ids`. All intermediate results are
    optional: those of `route`, and matrices in the order by expert: `sorted` [rows, width], the
    rows of x; `kept` [rows, 2 * inner], the sums before the gate; `activated` [rows, inner], its
    results; `outputs` [rows, width], those of the experts. Returns `out`. The workspace comes from
    PyTorch or CuPy, by the arrays.
    """
    _require_choices(logits, ids, gate_up)
    made = gate_of(gate)
    if made is None:
        raise ValueError("gate is None: a layer's experts have a gate")
    site = Site(stream, x, *_some((gate_up, down, logits, out)))
    _require_device(site)
    tokens = site.read(x, "x", _HALVES, rank=2)
    half = (tokens.dtype,)
    first = site.read(gate_up, "gate_up", half if tokens.dtype == "f16" else _OF_BF16, rank=3)
    operand = (first.dtype,)
    second = site.read(down, "down", operand, rank=3)
    experts, width, inner = first.shape[0], tokens.shape[1], second.shape[2]
    if first.shape != (experts, 2 * inner, width) or second.shape != (experts, width, inner):
        raise ValueError(f"x is {tokens.shape}, gate_up {first.shape} and down {second.shape}: they "
                         "must be [tokens, width], [experts, 2 * inner, width] and "
                         "[experts, width, inner]")
    routing = _routing(site, logits, ids, weights, None if logits is not None else experts, k,
                       scoring, bias, groups, renormalise, scale, alignment, rows)
    if (routing.tokens, routing.experts) != (tokens.shape[0], experts):
        raise ValueError(f"the choices are of {routing.tokens} tokens and {routing.experts} experts, "
                         f"x and gate_up of {tokens.shape[0]} and {experts}")
    problem = c.LayerProblem(operand=_OPERANDS.index(first.dtype), routing=routing, width=width,
                             inner=inner, x=_matrix(tokens, "x"),
                             gate_up=_weights_of(site, first, "gate_up", gate_up_bias, gate_up_scales, half),
                             gate=gate_struct(made),
                             down=_weights_of(site, second, "down", down_bias, down_scales, half),
                             powers_of_two=bool(powers_of_two))
    problem.out = _shaped(site.write(out, "out", half), "out", tokens.shape)
    if base is not None:
        problem.base = _shaped(site.read(base, "base", half), "base", tokens.shape)
    row_count = routing.rows or most_rows(routing.tokens, experts, routing.k, routing.alignment)
    wanted = (("sorted", sorted, operand, width), ("kept", kept, half, 2 * inner),
              ("activated", activated, operand, inner), ("outputs", outputs, half, width))
    places = {name: _shaped(site.write(array, name, dtypes), name, (row_count, columns))
              for name, array, dtypes, columns in wanted if array is not None}
    if "kept" in places:
        problem.gate.kept = places["kept"]
    results = c.LayerResults(
        routed=_results(site, routing, (None, None) if logits is None else (ids, weights),
                        (counts, begins, ends, row_of_choice, token_of_row, weight_of_row)))
    for name, member in (("sorted", "rows"), ("activated", "activated"), ("outputs", "outputs")):
        if name in places:
            setattr(results, member, places[name])
    for name, member, array, columns in (("sorted_scales", "row_scales", sorted_scales, width),
                                         ("activated_scales", "activated_scales", activated_scales,
                                          inner)):
        elements = row_count * -(-columns // SCALED_ELEMENTS)
        setattr(results, member, site.optional(array, name, _F32, elements, write=True))
    reports = reports_of(site, routing.tokens * routing.k, statuses, header, check=check)
    needed = c_uint64()
    check_call(lib.tmap_moe_layer_workspace_bytes(byref(problem), byref(needed)))
    with site.use():
        memory, _lent = site.memory(needed.value)
        check_call(lib.tmap_moe_layer(byref(problem), byref(results),
                                      call_on(site.stream, memory, needed.value, reports)))
        site.done()
    return out


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
    view = site.read(array, name, _F32, rank=3)
    if view.shape != shape:
        raise ValueError(f"{name} is {view.shape}: it must be {shape}")
    group, line, k = (stride // view.item_bytes for stride in view.strides)
    return c.BlockScales(values=view.address, line_stride=line, k_stride=k, group_stride=group,
                         lines=SCALED_ELEMENTS)


def _shaped(view, name, shape) -> c.Matrix:
    if view.shape != shape:
        raise ValueError(f"{name} is {view.shape}: it must be {shape}")
    return _matrix(view, name)


def _require_choices(logits, ids, experts):
    if logits is None and (ids is None or experts is None):
        raise ValueError("there are neither logits, nor ids with the number of experts")


def _routing(site, logits, ids, weights, experts, k, scoring, bias, groups, renormalise, scale,
             alignment, rows) -> c.RouteProblem:
    problem = c.RouteProblem(alignment=integer(alignment, "alignment", 32),
                             rows=integer(rows, "rows", 32))
    if logits is None:
        _refuse_options(scoring=(scoring, SCORINGS[0]), bias=(bias, None), groups=(groups, None),
                        renormalise=(bool(renormalise), False), scale=(scale, 1.0), k=(k, None))
        _set_given(site, problem, ids, weights, experts)
    else:
        _refuse_options(experts=(experts, None))
        _set_logits(site, problem, logits, k, scoring, bias, groups, renormalise, scale)
    return problem


def combine_backward(d_out, row_of_choice, *, values=None, weights=None, d_values=None,
                     d_weights=None, statuses=None, header=None, check=None, stream=None) -> None:
    """Computes the gradients of `combine` from that of its `out`, `d_out` [tokens, columns].

    `d_values` [rows, columns] gets weights[t, j] * d_out[t] in row row_of_choice[t, j]. No two
    choices name the same row; rows that no choice names stay as they are. `d_weights`, f32
    [tokens, k], gets the inner products of d_out[t] and that row of `values`, or 0 without a row.
    The sums are in f32, in a fixed order. Leave out what you do not want. Types and rows are those
    of `combine`. The gradient of its `base` is `d_out`.
    """
    if d_values is None and d_weights is None:
        raise ValueError("there is neither d_values nor d_weights to write")
    if d_weights is not None and values is None:
        raise ValueError("d_weights needs values")
    site = Site(stream, *_some((d_out, row_of_choice, values, weights, d_values, d_weights)))
    _require_device(site)
    source = site.read(d_out, "d_out", FLOATS, rank=2)
    index = _packed(site.read(row_of_choice, "row_of_choice", _I32, rank=2), "row_of_choice")
    tokens, columns = source.shape
    if index.shape[0] != tokens:
        raise ValueError(f"d_out is {source.shape} and row_of_choice {index.shape}: they must be "
                         "[tokens, columns] and [tokens, k]")
    problem = c.CombineGradients(tokens=tokens, columns=columns, k=integer(index.shape[1], "k", 32),
                                 row_type=FLOATS.index(source.dtype), row_of_choice=index.address,
                                 d_out=_matrix(source, "d_out"))
    rows = []
    for name, array, access in (("values", values, site.read), ("d_values", d_values, site.write)):
        if array is None:
            continue
        view = access(array, name, (source.dtype,), rank=2)
        rows.append(view.shape)
        if view.shape[1] != columns or view.shape != rows[0]:
            raise ValueError(f"{name} is {view.shape}: it must be [rows, {columns}]")
        setattr(problem, name, _matrix(view, name))
    problem.rows = rows[0][0]
    choices = tokens * problem.k
    problem.weights = site.optional(weights, "weights", _F32, choices)
    problem.d_weights = site.optional(d_weights, "d_weights", _F32, choices, write=True)
    reports = reports_of(site, choices, statuses, header, check=check)
    with site.use():
        call = call_on(site.stream, reports=reports)
        check_call(lib.tmap_moe_combine_backward(byref(problem), call))
        site.done()


def _some(arrays):
    return [array for array in arrays if array is not None]


def _require_device(site):
    if site.on_host:
        raise ValueError("experts are for arrays in device memory")


def _refuse_options(**options):
    for name, (value, default) in options.items():
        if value is not default and value != default:
            raise ValueError(f"{name} does not go with this kind of choices: with logits leave out "
                             "experts, without them all that concerns scores")


def _packed(view, name):
    if not view.is_packed:
        raise ValueError(f"{name} has gaps")
    return view


def _matrix(view, name) -> c.Matrix:
    """Describes a matrix whose rows have no gaps inside."""
    rows, columns = view.shape
    if columns > 1 and view.strides[1] != view.item_bytes:
        raise ValueError(f"{name} has gaps inside its rows: call .contiguous() first")
    # The step of a single row may be anything.
    pitch = view.strides[0] if rows > 1 else columns * view.item_bytes
    return c.Matrix(address=view.address, pitch_bytes=pitch)


def _set_given(site, problem, ids, weights, experts):
    view = _packed(site.read(ids, "ids", _IDS, rank=2), "ids")
    problem.tokens, problem.k = view.shape[0], integer(view.shape[1], "k", 32)
    problem.experts = integer(experts, "experts", 32)
    problem.choices.kind, problem.choices.bytes = c.CHOICES_GIVEN, view.item_bytes
    problem.choices.ids = view.address
    problem.choices.weights = site.optional(weights, "weights", _F32, problem.tokens * problem.k)


def _set_logits(site, problem, logits, k, scoring, bias, groups, renormalise, scale):
    view = site.read(logits, "logits", FLOATS, rank=2)
    if k is None:
        raise ValueError("with logits, k must be given")
    problem.tokens, problem.experts = view.shape[0], integer(view.shape[1], "experts", 32)
    problem.k = integer(k, "k", 32)
    made = problem.choices
    made.values, made.type = _matrix(view, "logits"), FLOATS.index(view.dtype)
    made.scoring = choice(scoring, SCORINGS, "scoring")
    made.renormalise, made.scale = bool(renormalise), real(scale, "scale")
    if made.scale == 0:
        raise ValueError("scale is 0: all weights would be")
    made.bias = site.optional(bias, "bias", _F32, problem.experts)
    if groups is not None:
        limits = Groups(*groups)
        made.groups = c.ExpertGroups(count=integer(limits.count, "groups.count", 32),
                                     chosen=integer(limits.chosen, "groups.chosen", 32),
                                     score=choice(limits.score, GROUP_SCORES, "groups.score"))


def _results(site, problem, of_logits, others) -> c.RouteResults:
    choices, experts = problem.tokens * problem.k, problem.experts
    rows = problem.rows or most_rows(problem.tokens, experts, problem.k, problem.alignment)
    made = c.RouteResults()
    sizes = {"ids": (_I32, choices), "weights": (_F32, choices), "counts": (_I32, experts),
             "begins": (_I32, experts + 1), "ends": (_I32, experts),
             "row_of_choice": (_I32, choices), "token_of_row": (_I32, rows),
             "weight_of_row": (_F32, rows)}
    for (name, (dtypes, elements)), array in zip(sizes.items(), (*of_logits, *others)):
        setattr(made, name, site.optional(array, name, dtypes, elements, write=True))
    return made
