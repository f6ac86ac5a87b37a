# SPDX-License-Identifier: Apache-2.0
"""Padding of ragged rows of JAX, and its inverse."""
from typing import Optional

import jax.numpy as jnp

from ._jax_handlers import array_of


def pad_ragged(values, group_sizes, max_length: int, *, fill=0):
    """Copies groups of rows that follow each other, [rows, ...], to slots of equal size: [groups,
    max_length, ...]. Places that have no row get `fill`. Rows that a slot has no place for are left
    out. XLA compiles it for any platform, and it has a gradient."""
    values, sizes = _rows_and_sizes(values, group_sizes, "values", 1)
    begins = jnp.cumsum(sizes) - sizes
    places = jnp.arange(max_length)
    rows = begins[:, None] + places
    is_row = (places < sizes[:, None]) & (rows < values.shape[0])
    taken = values.at[jnp.where(is_row, rows, values.shape[0])].get(mode="fill", fill_value=fill)
    return taken


def unpad_ragged(padded, group_sizes, rows: Optional[int] = None):
    """Undoes `pad_ragged`: copies the rows in slots, [groups, slot, ...], to [rows, ...], where
    groups follow each other. `rows` is groups times slot unless it is given. Rows past the last
    group become zero, and so do those that the slot of their group has no place for."""
    padded, sizes = _rows_and_sizes(padded, group_sizes, "padded", 2)
    groups, slot = padded.shape[:2]
    rows = groups * slot if rows is None else rows
    ends = jnp.cumsum(sizes)
    row = jnp.arange(rows)
    group = jnp.searchsorted(ends, row, side="right")
    within = row - (ends - sizes)[jnp.minimum(group, groups - 1)]
    is_row = (group < groups) & (within < slot)
    flat = padded.reshape(groups * slot, *padded.shape[2:])
    return flat.at[jnp.where(is_row, group * slot + within, groups * slot)].get(mode="fill", fill_value=0)


def _rows_and_sizes(values, group_sizes, name, rank):
    values, sizes = array_of(values, name), array_of(group_sizes, "group_sizes")
    if values.ndim < rank:
        raise ValueError(f"{name} has {values.ndim} dims; it has {rank} at least")
    if sizes.ndim != 1 or not jnp.issubdtype(sizes.dtype, jnp.integer):
        raise TypeError(f"group_sizes is integers in one dim, not {sizes.dtype} {sizes.shape}")
    if rank == 2 and sizes.shape[0] != values.shape[0]:
        raise ValueError(f"group_sizes has {sizes.shape[0]} sizes; {name} has {values.shape[0]} slots")
    return values, sizes
