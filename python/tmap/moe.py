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

from . import _structs as c
from ._arrays import Site
from ._batch import call_on, reports_of
from ._errors import check as check_call
from ._library import lib
from ._moe_layer import layer
from ._numbers import integer, status_bits
from ._routing import (F32, FLOATS, I32, Groups, matrix, most_rows, packed, require_choices,
                       require_device, results_of, routing_of, some)

__all__ = ["Fault", "Groups", "combine", "combine_backward", "faults_of", "layer", "most_rows",
           "route"]


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
    require_choices(logits, ids, experts)
    site = Site(stream, *some((logits, ids, weights, bias, counts, begins, ends, row_of_choice,
                               token_of_row, weight_of_row)))
    require_device(site)
    problem = routing_of(site, logits, ids, weights, experts, k, scoring, bias, groups, renormalise,
                         scale, alignment, rows)
    choices = problem.tokens * problem.k
    results = results_of(site, problem, (None, None) if logits is None else (ids, weights),
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
    site = Site(stream, *some((values, row_of_choice, out, weights, base)))
    require_device(site)
    source = site.read(values, "values", FLOATS, rank=2)
    target = site.write(out, "out", (source.dtype,), rank=2)
    index = packed(site.read(row_of_choice, "row_of_choice", I32, rank=2), "row_of_choice")
    tokens, columns = target.shape
    if source.shape[1] != columns or index.shape[0] != tokens:
        raise ValueError(f"out is {target.shape}, values {source.shape} and row_of_choice "
                         f"{index.shape}: they must be [tokens, columns], [rows, columns] and "
                         "[tokens, k]")
    problem = c.CombineProblem(tokens=tokens, columns=columns, rows=source.shape[0],
                               k=integer(index.shape[1], "k", 32),
                               row_type=FLOATS.index(source.dtype), row_of_choice=index.address,
                               values=matrix(source, "values"), out=matrix(target, "out"))
    problem.weights = site.optional(weights, "weights", F32, tokens * problem.k)
    if base is not None:
        first = site.read(base, "base", (source.dtype,), rank=2)
        if first.shape != target.shape:
            raise ValueError(f"base is {first.shape}: it must be {target.shape}, as out is")
        problem.base = matrix(first, "base")
    reports = reports_of(site, tokens * problem.k, statuses, header, check=check)
    with site.use():
        check_call(lib.tmap_moe_combine(byref(problem), call_on(site.stream, reports=reports)))
        site.done()
    return out


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
    site = Site(stream, *some((d_out, row_of_choice, values, weights, d_values, d_weights)))
    require_device(site)
    source = site.read(d_out, "d_out", FLOATS, rank=2)
    index = packed(site.read(row_of_choice, "row_of_choice", I32, rank=2), "row_of_choice")
    tokens, columns = source.shape
    if index.shape[0] != tokens:
        raise ValueError(f"d_out is {source.shape} and row_of_choice {index.shape}: they must be "
                         "[tokens, columns] and [tokens, k]")
    problem = c.CombineGradients(tokens=tokens, columns=columns, k=integer(index.shape[1], "k", 32),
                                 row_type=FLOATS.index(source.dtype), row_of_choice=index.address,
                                 d_out=matrix(source, "d_out"))
    rows = []
    for name, array, access in (("values", values, site.read), ("d_values", d_values, site.write)):
        if array is None:
            continue
        view = access(array, name, (source.dtype,), rank=2)
        rows.append(view.shape)
        if view.shape[1] != columns or view.shape != rows[0]:
            raise ValueError(f"{name} is {view.shape}: it must be [rows, {columns}]")
        setattr(problem, name, matrix(view, name))
    problem.rows = rows[0][0]
    choices = tokens * problem.k
    problem.weights = site.optional(weights, "weights", F32, choices)
    problem.d_weights = site.optional(d_weights, "d_weights", F32, choices, write=True)
    reports = reports_of(site, choices, statuses, header, check=check)
    with site.use():
        call = call_on(site.stream, reports=reports)
        check_call(lib.tmap_moe_combine_backward(byref(problem), call))
        site.done()


