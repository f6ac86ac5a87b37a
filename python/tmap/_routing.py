# SPDX-License-Identifier: Apache-2.0
"""Choices of experts, and what a route makes of them, as the library takes them."""
from typing import NamedTuple

from . import _structs as c
from ._library import lib
from ._numbers import choice, integer, real

FLOATS = ("f32", "bf16", "f16")
SCORINGS = ("softmax_then_top_k", "top_k_then_softmax", "sigmoid")
GROUP_SCORES = ("largest", "sum_of_two_largest")
_IDS, I32, F32 = ("i32", "i64"), ("i32",), ("f32",)
# The limits of one call (tmap/moe.hpp).
MAX_EXPERTS, MAX_K, MAX_CHOICES = 1024, 32, 1 << 30


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


def require_choices(logits, ids, experts):
    if logits is None and (ids is None or experts is None):
        raise ValueError("there are neither logits, nor ids with the number of experts")


def routing_of(site, logits, ids, weights, experts, k, scoring, bias, groups, renormalise, scale,
               alignment, rows) -> c.RouteProblem:
    problem = c.RouteProblem(alignment=integer(alignment, "alignment", 32),
                             rows=integer(rows, "rows", 32))
    if logits is None:
        _refuse_options(scoring=(scoring, SCORINGS[0]), bias=(bias, None), groups=(groups, None),
                        renormalise=(bool(renormalise), False), scale=(scale, 1.0), k=(k, None))
        set_given(site, problem, ids, weights, experts)
    else:
        _refuse_options(experts=(experts, None))
        set_logits(site, problem, logits, k, scoring, bias, groups, renormalise, scale)
    return problem


def some(arrays):
    return [array for array in arrays if array is not None]


def require_device(site):
    if site.on_host:
        raise ValueError("experts are for arrays in device memory")


def _refuse_options(**options):
    for name, (value, default) in options.items():
        if value is not default and value != default:
            raise ValueError(f"{name} does not go with this kind of choices: with logits leave out "
                             "experts, without them all that concerns scores")


def packed(view, name):
    if not view.is_packed:
        raise ValueError(f"{name} has gaps")
    return view


def matrix(view, name) -> c.Matrix:
    """Describes a matrix whose rows have no gaps inside."""
    rows, columns = view.shape
    if columns > 1 and view.strides[1] != view.item_bytes:
        raise ValueError(f"{name} has gaps inside its rows: call .contiguous() first")
    # The step of a single row may be anything.
    pitch = view.strides[0] if rows > 1 else columns * view.item_bytes
    return c.Matrix(address=view.address, pitch_bytes=pitch)


def shaped(view, name, shape) -> c.Matrix:
    """Describes a matrix that must have this shape."""
    if view.shape != shape:
        raise ValueError(f"{name} is {view.shape}: it must be {shape}")
    return matrix(view, name)


def set_given(site, problem, ids, weights, experts):
    view = packed(site.read(ids, "ids", _IDS, rank=2), "ids")
    problem.tokens, problem.k = view.shape[0], integer(view.shape[1], "k", 32)
    problem.experts = integer(experts, "experts", 32)
    problem.choices.kind, problem.choices.bytes = c.CHOICES_GIVEN, view.item_bytes
    problem.choices.ids = view.address
    problem.choices.weights = site.optional(weights, "weights", F32, problem.tokens * problem.k)


def set_logits(site, problem, logits, k, scoring, bias, groups, renormalise, scale):
    view = site.read(logits, "logits", FLOATS, rank=2)
    if k is None:
        raise ValueError("with logits, k must be given")
    problem.tokens, problem.experts = view.shape[0], integer(view.shape[1], "experts", 32)
    problem.k = integer(k, "k", 32)
    made = problem.choices
    made.values, made.type = matrix(view, "logits"), FLOATS.index(view.dtype)
    made.scoring = choice(scoring, SCORINGS, "scoring")
    made.renormalise, made.scale = bool(renormalise), real(scale, "scale")
    if made.scale == 0:
        raise ValueError("scale is 0: all weights would be")
    made.bias = site.optional(bias, "bias", F32, problem.experts)
    if groups is not None:
        limits = Groups(*groups)
        made.groups = c.ExpertGroups(count=integer(limits.count, "groups.count", 32),
                                     chosen=integer(limits.chosen, "groups.chosen", 32),
                                     score=choice(limits.score, GROUP_SCORES, "groups.score"))


def results_of(site, problem, of_logits, others) -> c.RouteResults:
    choices, experts = problem.tokens * problem.k, problem.experts
    rows = problem.rows or most_rows(problem.tokens, experts, problem.k, problem.alignment)
    made = c.RouteResults()
    sizes = {"ids": (I32, choices), "weights": (F32, choices), "counts": (I32, experts),
             "begins": (I32, experts + 1), "ends": (I32, experts),
             "row_of_choice": (I32, choices), "token_of_row": (I32, rows),
             "weight_of_row": (F32, rows)}
    for (name, (dtypes, elements)), array in zip(sizes.items(), (*of_logits, *others)):
        setattr(made, name, site.optional(array, name, dtypes, elements, write=True))
    return made
