# SPDX-License-Identifier: Apache-2.0
"""Grouped products of JAX that tmap runs on Hopper: `ragged_dot` with JAX's own contract, its
gradients, and padding of ragged rows.

A call that tmap does not take goes on to JAX's own function. So does a program that is compiled for
another platform than CUDA. `docs/jax.md` lists what is taken.
"""
from typing import Dict

import jax.numpy as jnp
import numpy as np
from jax import lax

from ._calls import CallCounts, Calls
from ._jax_handlers import along_same_axes, array_of, has_other_gpu, register
from ._jax_padding import pad_ragged, unpad_ragged
from ._jax_products import BY_ROWS, BY_SUMS, MOST_EXTENT, MOST_GROUPS, Form, by_rows, by_sums

__all__ = ["Calls", "calls", "pad_ragged", "ragged_dot", "ragged_dot_general", "register", "unpad_ragged"]

CAPABILITY = "the GPU has not compute capability 9.0"
TYPES = "tmap multiplies two operands of bfloat16 or of float16"
RESULT = "the result is neither of the operands' type nor float32"
SIZES = "group_sizes is not integers in one dim, with a size for each group"
SHAPES = "the operands are empty, or their dims do not fit"
UNITS = "an extent that is not ragged is no multiple of 8"
NUMBERS = "tmap has no such dimension numbers"
SHARDING = "the call names a sharding of its result"
LIMITS = "tmap takes 65536 groups and 2^31 rows"
OFFSET = "group_offset is neither a scalar nor [1]"

_UNIT = 8
_counts = CallCounts()


def calls() -> Dict[str, Calls]:
    """Counts the calls of this process, by the names of the functions. A call inside `jax.jit`
    counts once, when it is traced."""
    return _counts.of("ragged_dot", "ragged_dot_general")


def _refuse(lhs, rhs, sizes, result, offset, kinds):
    """Returns why tmap does not take a call, or None."""
    if has_other_gpu():
        return CAPABILITY
    if lhs.dtype != rhs.dtype or lhs.dtype not in (jnp.bfloat16, jnp.float16):
        return TYPES
    if result not in (lhs.dtype, np.dtype(np.float32)):
        return RESULT
    if kinds is None:
        return NUMBERS
    if sizes.ndim != 1 or not jnp.issubdtype(sizes.dtype, jnp.integer):
        return SIZES
    if offset is not None and offset.size != 1:
        return OFFSET
    return _refuse_extents(lhs.shape, rhs.shape, sizes.shape[0], offset is not None, kinds)


def _refuse_extents(lhs, rhs, groups, has_offset, kinds):
    if (len(lhs), len(rhs)) != ((2, 2) if kinds == "sums" else (2, 3)) or 0 in (*lhs, *rhs, groups):
        return SHAPES
    if kinds == "sums":
        fits, units = lhs[0] == rhs[0], (lhs[1], rhs[1])
    else:
        fits = lhs[1] == rhs[2 if kinds == "turned" else 1] and (
            rhs[0] <= groups if has_offset else rhs[0] == groups)
        units = rhs[1:]
    if not fits:
        return SHAPES
    if any(extent % _UNIT for extent in units):
        return UNITS
    return None if groups <= MOST_GROUPS and lhs[0] < MOST_EXTENT else LIMITS


def _kind_of(numbers):
    """Returns which of tmap's products has these dimension numbers, or None."""
    for kind, ours in (("plain", BY_ROWS[False]), ("turned", BY_ROWS[True]), ("sums", BY_SUMS)):
        if _plain(numbers) == _plain(ours):
            return kind
    return None


def _plain(numbers):
    (contracted, batch) = numbers.dot_dimension_numbers
    return tuple(tuple(map(int, each)) for each in (
        *contracted, *batch, numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions))


def _run(name, lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset, out_sharding,
         elsewhere):
    lhs, rhs, sizes = (array_of(each, of) for each, of in (
        (lhs, "lhs"), (rhs, "rhs"), (group_sizes, "group_sizes")))
    offset = None if group_offset is None else array_of(group_offset, "group_offset")
    result = np.dtype(lhs.dtype if preferred_element_type is None else preferred_element_type)
    kind = _kind_of(numbers)
    reason = SHARDING if out_sharding is not None else _refuse(lhs, rhs, sizes, result, offset, kind)
    if reason is None and kind == "sums" and offset is not None:
        reason = OFFSET
    _counts.add(name, reason)
    if reason is not None:
        return elsewhere()
    offset = None if offset is None else offset.reshape(()).astype(jnp.int32)
    lhs, rhs, sizes, offset = along_same_axes(lhs, rhs, sizes, offset)
    if kind == "sums":
        return by_sums(result, lhs, rhs, sizes)
    return by_rows(Form(kind == "turned", result), lhs, rhs, sizes, offset)


def ragged_dot(lhs, rhs, group_sizes, precision=None, preferred_element_type=None, group_offset=None,
               out_sharding=None):
    """Multiplies groups of rows as `jax.lax.ragged_dot` does: lhs [rows, k], rhs [groups, k, n] and
    group_sizes [groups] give [rows, n]. Rows past the last group become zero.

    `preferred_element_type` is the operands' type or float32. Sums are in f32 with any
    `precision`. With `group_offset`, a scalar or [1], rhs has the matrices of the groups from that
    one on. Rows of other groups become zero.

    It goes with `jit`, `vmap`, `grad` and `shard_map`. The gradient of the result is rounded to the
    operands' type. Forward-mode derivatives need `jax.lax.ragged_dot`."""
    return _run("ragged_dot", lhs, rhs, group_sizes, BY_ROWS[False], precision, preferred_element_type,
                group_offset, out_sharding,
                lambda: lax.ragged_dot(lhs, rhs, group_sizes, precision, preferred_element_type, group_offset,
                                       out_sharding))


def ragged_dot_general(lhs, rhs, group_sizes, ragged_dot_dimension_numbers, precision=None,
                       preferred_element_type=None, group_offset=None, out_sharding=None):
    """Multiplies as `jax.lax.ragged_dot_general` does. tmap takes the dimension numbers of three
    products:

    | lhs | rhs | ragged | result |
    |---|---|---|---|
    | [rows, k] | [groups, k, n] | rows | [rows, n] |
    | [rows, k] | [groups, n, k] | rows | [rows, n] |
    | [rows, m] | [rows, n] | what is summed over | [groups, m, n] |
    """
    return _run("ragged_dot_general", lhs, rhs, group_sizes, ragged_dot_dimension_numbers, precision,
                preferred_element_type, group_offset, out_sharding,
                lambda: lax.ragged_dot_general(lhs, rhs, group_sizes, ragged_dot_dimension_numbers, precision,
                                               preferred_element_type, group_offset, out_sharding))
