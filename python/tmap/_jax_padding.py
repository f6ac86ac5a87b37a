# SPDX-License-Identifier: Apache-2.0
"""Padding of ragged rows of JAX and its inverse: handlers of XLA's custom calls on Hopper, gathers
of XLA elsewhere."""
from functools import partial
from typing import NamedTuple, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._jax_handlers import along_same_axes, array_of, axes_of, call_handler, has_other_gpu, no_gradient, varying

# The handlers move whole bytes, at most 8 for each element.
_TYPES = frozenset(np.dtype(each) for each in (
    jnp.bool_, jnp.int8, jnp.int16, jnp.int32, jnp.int64, jnp.uint8, jnp.uint16, jnp.uint32, jnp.uint64,
    jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64, jnp.complex64, jnp.float8_e4m3fn, jnp.float8_e5m2))


class _Layout(NamedTuple):
    """How many rows there are, and places in a slot."""
    rows: int
    slot: int


def pad_ragged(values, group_sizes, max_length: int, *, fill=0):
    """Copies groups of rows that follow each other, [rows, ...], to slots of equal size: [groups,
    max_length, ...]. Places that have no row get `fill`, a number that is known when the call is
    traced. Rows that a slot has no place for are left out.

    It goes with `jit`, `vmap`, `grad` and `shard_map`. Its gradient is `unpad_ragged`."""
    values, ends = _rows_and_ends(values, group_sizes, "values", 1)
    return _pad(_Layout(values.shape[0], max_length), fill, values, ends)


def unpad_ragged(padded, group_sizes, rows: Optional[int] = None):
    """Undoes `pad_ragged`: copies the rows in slots, [groups, slot, ...], to [rows, ...], where
    groups follow each other. `rows` is groups times slot unless it is given. Rows past the last
    group become zero, and so do those that the slot of their group has no place for.

    It goes with `jit`, `vmap`, `grad` and `shard_map`. Its gradient is `pad_ragged`."""
    padded, ends = _rows_and_ends(padded, group_sizes, "padded", 2)
    groups, slot = padded.shape[:2]
    return _unpad(_Layout(groups * slot if rows is None else rows, slot), padded, ends)


def _rows_and_ends(values, group_sizes, name, rank):
    values, sizes = array_of(values, name), array_of(group_sizes, "group_sizes")
    if values.ndim < rank:
        raise ValueError(f"{name} has {values.ndim} dims; it has {rank} at least")
    if sizes.ndim != 1 or not jnp.issubdtype(sizes.dtype, jnp.integer):
        raise TypeError(f"group_sizes is integers in one dim, not {sizes.dtype} {sizes.shape}")
    if rank == 2 and sizes.shape[0] != values.shape[0]:
        raise ValueError(f"group_sizes has {sizes.shape[0]} sizes; {name} has {values.shape[0]} slots")
    return along_same_axes(values, jnp.cumsum(sizes, dtype=jnp.int64 if jax.config.jax_enable_x64 else jnp.int32))


def _begins(ends):
    """Returns where each group begins, and where another one would."""
    return jnp.concatenate([jnp.zeros((1,), ends.dtype), ends])


def _bits_of(fill, dtype):
    element = np.asarray(fill, dtype).tobytes()
    return np.frombuffer(element.ljust(8, b"\0"), np.int64)[0]


def _gathered(array, index, exists, fill):
    if len(array) == 0:  # XLA gathers nothing from nothing
        empty = jnp.full((*index.shape, *array.shape[1:]), fill, array.dtype)
        return varying(empty, axes_of(array, index))
    return array.at[jnp.where(exists, index, len(array))].get(mode="fill", fill_value=fill)


def _pad_on_cuda(layout, fill, values, ends):
    shape = ends.shape[0], layout.slot, *values.shape[1:]
    return call_handler("tmap_xla_pad_rows", [jax.ShapeDtypeStruct(shape, values.dtype)], (values, ends),
                        "broadcast_all", fill=_bits_of(fill, values.dtype))


def _pad_elsewhere(layout, fill, values, ends):
    places = jnp.arange(layout.slot)
    rows = _begins(ends)[:-1, None] + places
    is_row = (rows < ends[:, None]) & (rows < layout.rows)
    return _gathered(values, rows, is_row, fill)


def _unpad_on_cuda(layout, padded, ends):
    shape = layout.rows, *padded.shape[2:]
    return call_handler("tmap_xla_unpad_rows", [jax.ShapeDtypeStruct(shape, padded.dtype)], (padded, ends),
                        "broadcast_all")


def _unpad_elsewhere(layout, padded, ends):
    groups = ends.shape[0]
    row = jnp.arange(layout.rows)
    group = jnp.searchsorted(ends, row, side="right")
    within = row - _begins(ends)[group]
    is_row = (group < groups) & (within < layout.slot)
    flat = padded.reshape(groups * layout.slot, *padded.shape[2:])
    return _gathered(flat, group * layout.slot + within, is_row, 0)


def _by_platform(on_cuda, elsewhere, rows, ends):
    if rows.dtype not in _TYPES or has_other_gpu():
        return elsewhere(rows, ends)
    return lax.platform_dependent(rows, ends, cuda=on_cuda, default=elsewhere)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _pad(layout, fill, values, ends):
    return _by_platform(partial(_pad_on_cuda, layout, fill), partial(_pad_elsewhere, layout, fill), values, ends)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _unpad(layout, padded, ends):
    return _by_platform(partial(_unpad_on_cuda, layout), partial(_unpad_elsewhere, layout), padded, ends)


_pad.defvjp(lambda layout, fill, values, ends: (_pad(layout, fill, values, ends), ends),
            lambda layout, fill, ends, slope: (_unpad(layout, slope, ends), no_gradient(ends)))
_unpad.defvjp(lambda layout, padded, ends: (_unpad(layout, padded, ends), ends),
              lambda layout, ends, slope: (_pad(layout, 0, slope, ends), no_gradient(ends)))
