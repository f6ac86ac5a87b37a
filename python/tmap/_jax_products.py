# SPDX-License-Identifier: Apache-2.0
"""Grouped products of JAX as handlers of XLA's custom calls, their gradients and their batches, and
JAX's own products for every platform but CUDA."""
from ctypes import byref, c_uint64
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._errors import check
from ._jax_handlers import call_handler, no_gradient
from ._library import lib

MOST_GROUPS, MOST_EXTENT = 65536, 2**31


@lru_cache(maxsize=None)
def _workspace_bytes(groups):
    size = c_uint64()
    check(lib.tmap_gemm_workspace_bytes(groups, byref(size)))
    return max(size.value, 1)


class Form(NamedTuple):
    """How a product of groups of rows is stored: rhs is [groups, n, k] if it is turned."""
    is_turned: bool
    result: np.dtype


def _call(name, shape, dtype, operands, offsets, **attributes):
    """Calls a handler for one product. Only `_by_fold` makes it a product of many."""
    out = jax.ShapeDtypeStruct(shape, dtype)
    workspace = jax.ShapeDtypeStruct((_workspace_bytes(offsets[0].shape[0]),), jnp.uint8)
    return call_handler(name, [out, workspace], (*operands, *offsets), "sequential", **attributes)


def _begins_and_counts(offsets, rows):
    """Returns where the groups of each product of a batch begin if all follow each other, and their
    sizes: both [batch * groups]."""
    begins, counts = offsets if len(offsets) == 2 else (
        jnp.cumsum(offsets[0], axis=1, dtype=jnp.int32) - offsets[0], offsets[0])
    first = jnp.arange(begins.shape[0], dtype=jnp.int32)[:, None] * rows
    return (begins + first).reshape(-1), counts.reshape(-1)


def _one_of(index, given, batched):
    """Returns the arguments of one call of a batch."""
    return jax.tree.map(lambda array, is_batched: jnp.asarray(array)[index] if is_batched else array,
                        tuple(given), tuple(batched))


def _by_fold(call, fold, has_weights):
    """Makes a batch of calls one call with more groups. Arrays of rows that are not batched are
    repeated, as the result's are. Weights are not: their products are a loop."""
    folding = jax.custom_batching.custom_vmap(call)

    @folding.def_vmap
    def _(size, batched, lhs, rhs, offsets):
        given = lhs, rhs, offsets
        fits = (size * offsets[0].shape[-1] <= MOST_GROUPS
                and size * lhs.shape[int(batched[0])] < MOST_EXTENT)
        if fits and (batched[1] or not has_weights):
            lhs, rhs, offsets = jax.tree.map(
                lambda each, is_batched: each if is_batched else jnp.broadcast_to(each, (size, *each.shape)),
                given, tuple(batched))
            return fold(size, lhs, rhs, _begins_and_counts(offsets, lhs.shape[1])), True
        return lax.map(lambda index: call(*_one_of(index, given, batched)), jnp.arange(size)), True
    return folding


@lru_cache(maxsize=None)
def _rows_on_cuda(form):
    def call(lhs, rhs, offsets):
        n = rhs.shape[1 if form.is_turned else 2]
        return _call("tmap_xla_rows", (lhs.shape[0], n), form.result, (lhs, rhs), offsets,
                     turned=np.int32(form.is_turned))

    def fold(size, lhs, rhs, offsets):
        out = call(lhs.reshape(-1, lhs.shape[2]), rhs.reshape(-1, *rhs.shape[2:]), offsets)
        return out.reshape(size, lhs.shape[1], -1)
    return _by_fold(call, fold, has_weights=True)


@lru_cache(maxsize=None)
def _weights_on_cuda(result):
    def call(lhs, rhs, offsets):
        shape = offsets[0].shape[0], lhs.shape[1], rhs.shape[1]
        return _call("tmap_xla_weights", shape, result, (lhs, rhs), offsets)

    def fold(size, lhs, rhs, offsets):
        out = call(lhs.reshape(-1, lhs.shape[2]), rhs.reshape(-1, rhs.shape[2]), offsets)
        return out.reshape(size, -1, *out.shape[1:])
    return _by_fold(call, fold, has_weights=False)


BY_ROWS = {is_turned: lax.RaggedDotDimensionNumbers((((1,), (2 if is_turned else 1,)), ((), ())), (0,), (0,))
            for is_turned in (False, True)}
BY_SUMS = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())


def _outer_sizes(sizes, offset, groups):
    """Returns the sizes of the groups of a shard, with one group more for all rows before them."""
    before = jnp.where(jnp.arange(sizes.shape[0]) < offset, sizes, 0).sum(dtype=sizes.dtype)
    return jnp.concatenate([before[None], lax.dynamic_slice(sizes, (offset,), (groups,))])


def _rows_elsewhere(form, lhs, rhs, sizes, offset):
    if offset is not None:
        sizes = _outer_sizes(sizes, offset, rhs.shape[0])
        rhs = jnp.concatenate([jnp.zeros_like(rhs[:1]), rhs])
    return lax.ragged_dot_general(lhs, rhs, sizes, BY_ROWS[form.is_turned], preferred_element_type=form.result)


def _weights_elsewhere(groups, result, lhs, rhs, sizes, offset):
    if offset is not None:
        sizes = _outer_sizes(sizes, offset, groups)
    sums = lax.ragged_dot_general(lhs, rhs, sizes, BY_SUMS, preferred_element_type=result)
    return sums if offset is None else sums[1:]


def _offsets(sizes, offset, groups):
    """Returns what cuts the rows into groups, on CUDA."""
    sizes = sizes.astype(jnp.int32)
    if offset is None:
        return (sizes,)
    begins = jnp.cumsum(sizes, dtype=jnp.int32) - sizes
    return tuple(lax.dynamic_slice(each, (offset,), (groups,)) for each in (begins, sizes))


def _looping(call):
    """Makes a batch of calls a loop where JAX has no rule: its product wants both operands
    batched."""
    looping = jax.custom_batching.custom_vmap(call)

    @looping.def_vmap
    def _(size, batched, *given):
        if all(jax.tree.leaves(batched)):
            return jax.vmap(call)(*given), True
        return lax.map(lambda index: call(*_one_of(index, given, batched)), jnp.arange(size)), True
    return looping


def _rows(form, lhs, rhs, sizes, offset):
    return lax.platform_dependent(
        lhs, rhs, sizes, offset, default=_looping(partial(_rows_elsewhere, form)),
        cuda=lambda a, b, s, o: _rows_on_cuda(form)(a, b, _offsets(s, o, b.shape[0])))


def _weights(groups, result, lhs, rhs, sizes, offset):
    return lax.platform_dependent(
        lhs, rhs, sizes, offset, default=_looping(partial(_weights_elsewhere, groups, result)),
        cuda=lambda a, b, s, o: _weights_on_cuda(result)(a, b, _offsets(s, o, groups)))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def by_rows(form, lhs, rhs, sizes, offset):
    return _rows(form, lhs, rhs, sizes, offset)


def _by_rows_forward(form, lhs, rhs, sizes, offset):
    return _rows(form, lhs, rhs, sizes, offset), (lhs, rhs, sizes, offset)


def _by_rows_backward(form, kept, slope):
    lhs, rhs, sizes, offset = kept
    slope = slope.astype(lhs.dtype)
    of_lhs = _rows(Form(not form.is_turned, lhs.dtype), slope, rhs, sizes, offset)
    pair = (slope, lhs) if form.is_turned else (lhs, slope)
    of_rhs = _weights(rhs.shape[0], rhs.dtype, *pair, sizes, offset)
    return of_lhs, of_rhs, no_gradient(sizes), no_gradient(offset)


by_rows.defvjp(_by_rows_forward, _by_rows_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def by_sums(result, lhs, rhs, sizes):
    return _weights(sizes.shape[0], result, lhs, rhs, sizes, None)


def _by_sums_forward(result, lhs, rhs, sizes):
    return by_sums(result, lhs, rhs, sizes), (lhs, rhs, sizes)


def _by_sums_backward(result, kept, slope):
    lhs, rhs, sizes = kept
    slope = slope.astype(lhs.dtype)
    of_lhs = _rows(Form(True, lhs.dtype), rhs, slope, sizes, None)
    of_rhs = _rows(Form(False, rhs.dtype), lhs, slope, sizes, None)
    return of_lhs, of_rhs, no_gradient(sizes)


by_sums.defvjp(_by_sums_forward, _by_sums_backward)
