# SPDX-License-Identifier: Apache-2.0
"""Grouped products of JAX that tmap runs on Hopper: `ragged_dot` with JAX's own contract, its
gradients, and padding of ragged rows.

A call that tmap does not take goes on to JAX's own function. So does a program that is compiled for
another platform than CUDA. `docs/jax.md` lists what is taken.
"""
import threading
from collections import Counter
from ctypes import byref, c_uint64, c_void_p
from functools import lru_cache, partial
from typing import Dict, NamedTuple, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._library import lib
from ._errors import check

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

_MOST_GROUPS, _MOST_EXTENT, _UNIT = 65536, 2**31, 8
_lock = threading.Lock()
_counts = Counter()


class Calls(NamedTuple):
    """Counts the calls of one function: those that tmap took, and those that went on to JAX, by the
    reason."""
    taken: int
    passed: Dict[str, int]


def calls() -> Dict[str, Calls]:
    """Counts the calls of this process, by the names of the functions. A call inside `jax.jit`
    counts once, when it is traced."""
    with _lock:
        counts = dict(_counts)
    return {name: Calls(counts.get((name, None), 0),
                        {reason: count for (of, reason), count in counts.items()
                         if of == name and reason is not None})
            for name in ("ragged_dot", "ragged_dot_general")}


def _count(name, reason):
    with _lock:
        _counts[name, reason] += 1
    return reason


@lru_cache(maxsize=None)
def register() -> None:
    """Gives XLA the handlers of libtmap.so. Only a process that runs a program of `jax.export`
    needs it: products do it themselves."""
    for name in ("tmap_xla_rows", "tmap_xla_weights"):
        function = getattr(lib, name)
        function.argtypes, function.restype = (c_void_p,), c_void_p
        try:
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform="CUDA")
        except Exception as reason:
            raise RuntimeError(f"tmap.jax: jaxlib {jax.lib.__version__} refuses the handler {name}: "
                               f"{reason}. Use jaxlib 0.11, or jax.lax.ragged_dot") from reason


@lru_cache(maxsize=None)
def _other_gpu():
    """Returns whether JAX has a GPU on which the products do not run. Without one, a program may be
    exported for Hopper."""
    try:
        devices = jax.devices("cuda")
    except RuntimeError:
        return False
    return any(str(device.compute_capability) != "9.0" for device in devices)


@lru_cache(maxsize=None)
def _workspace_bytes(groups):
    size = c_uint64()
    check(lib.tmap_gemm_workspace_bytes(groups, byref(size)))
    return max(size.value, 1)


class _Form(NamedTuple):
    """How a product of groups of rows is stored: rhs is [groups, n, k] if it is turned."""
    is_turned: bool
    result: np.dtype


def _call(name, shape, dtype, operands, offsets, **attributes):
    """Calls a handler for one product. Only `_folded` makes it a product of many."""
    out = jax.ShapeDtypeStruct(shape, dtype)
    workspace = jax.ShapeDtypeStruct((_workspace_bytes(offsets[0].shape[0]),), jnp.uint8)
    product = jax.ffi.ffi_call(name, (out, workspace), vmap_method="sequential")(
        *operands, *offsets, **attributes)[0]
    # JAX does not see that the result differs where the operands do.
    return _varying(product, _axes_of(*operands, *offsets))


def _axes_of(*arrays):
    """Returns the axes of a `shard_map` along which any of the arrays differs."""
    kinds = [jax.typeof(each) for each in arrays]
    return frozenset().union(*(kind.manual_axis_type.varying if hasattr(kind, "manual_axis_type") else kind.vma
                               for kind in kinds))


def _varying(array, axes):
    missing = axes - _axes_of(array)
    return lax.pcast(array, tuple(missing), to="varying") if missing else array


def _along_same_axes(*arrays):
    """Makes arrays differ along the same axes of a `shard_map`, so that a gradient of one that does
    not differ is summed over them."""
    axes = _axes_of(*(each for each in arrays if each is not None))
    return [None if each is None else _varying(each, axes) for each in arrays]


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
        fits = (size * offsets[0].shape[-1] <= _MOST_GROUPS
                and size * lhs.shape[int(batched[0])] < _MOST_EXTENT)
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
        register()
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
        register()
        shape = offsets[0].shape[0], lhs.shape[1], rhs.shape[1]
        return _call("tmap_xla_weights", shape, result, (lhs, rhs), offsets)

    def fold(size, lhs, rhs, offsets):
        out = call(lhs.reshape(-1, lhs.shape[2]), rhs.reshape(-1, rhs.shape[2]), offsets)
        return out.reshape(size, -1, *out.shape[1:])
    return _by_fold(call, fold, has_weights=False)


_BY_ROWS = {is_turned: lax.RaggedDotDimensionNumbers((((1,), (2 if is_turned else 1,)), ((), ())), (0,), (0,))
            for is_turned in (False, True)}
_BY_SUMS = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())


def _outer_sizes(sizes, offset, groups):
    """Returns the sizes of the groups of a shard, with one group more for all rows before them."""
    before = jnp.where(jnp.arange(sizes.shape[0]) < offset, sizes, 0).sum(dtype=sizes.dtype)
    return jnp.concatenate([before[None], lax.dynamic_slice(sizes, (offset,), (groups,))])


def _rows_elsewhere(form, lhs, rhs, sizes, offset):
    if offset is not None:
        sizes = _outer_sizes(sizes, offset, rhs.shape[0])
        rhs = jnp.concatenate([jnp.zeros_like(rhs[:1]), rhs])
    return lax.ragged_dot_general(lhs, rhs, sizes, _BY_ROWS[form.is_turned], preferred_element_type=form.result)


def _weights_elsewhere(groups, result, lhs, rhs, sizes, offset):
    if offset is not None:
        sizes = _outer_sizes(sizes, offset, groups)
    sums = lax.ragged_dot_general(lhs, rhs, sizes, _BY_SUMS, preferred_element_type=result)
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


def _no_gradient(array):
    return None if array is None else np.zeros(array.shape, jax.dtypes.float0)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _by_rows(form, lhs, rhs, sizes, offset):
    return _rows(form, lhs, rhs, sizes, offset)


def _by_rows_forward(form, lhs, rhs, sizes, offset):
    return _rows(form, lhs, rhs, sizes, offset), (lhs, rhs, sizes, offset)


def _by_rows_backward(form, kept, slope):
    lhs, rhs, sizes, offset = kept
    slope = slope.astype(lhs.dtype)
    of_lhs = _rows(_Form(not form.is_turned, lhs.dtype), slope, rhs, sizes, offset)
    pair = (slope, lhs) if form.is_turned else (lhs, slope)
    of_rhs = _weights(rhs.shape[0], rhs.dtype, *pair, sizes, offset)
    return of_lhs, of_rhs, _no_gradient(sizes), _no_gradient(offset)


_by_rows.defvjp(_by_rows_forward, _by_rows_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _by_sums(result, lhs, rhs, sizes):
    return _weights(sizes.shape[0], result, lhs, rhs, sizes, None)


def _by_sums_forward(result, lhs, rhs, sizes):
    return _by_sums(result, lhs, rhs, sizes), (lhs, rhs, sizes)


def _by_sums_backward(result, kept, slope):
    lhs, rhs, sizes = kept
    slope = slope.astype(lhs.dtype)
    of_lhs = _rows(_Form(True, lhs.dtype), rhs, slope, sizes, None)
    of_rhs = _rows(_Form(False, rhs.dtype), lhs, slope, sizes, None)
    return of_lhs, of_rhs, _no_gradient(sizes)


_by_sums.defvjp(_by_sums_forward, _by_sums_backward)


def _refuse(lhs, rhs, sizes, result, offset, kinds):
    """Returns why tmap does not take a call, or None."""
    if _other_gpu():
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
    return None if groups <= _MOST_GROUPS and lhs[0] < _MOST_EXTENT else LIMITS


def _kind_of(numbers):
    """Returns which of tmap's products has these dimension numbers, or None."""
    for kind, ours in (("plain", _BY_ROWS[False]), ("turned", _BY_ROWS[True]), ("sums", _BY_SUMS)):
        if _plain(numbers) == _plain(ours):
            return kind
    return None


def _plain(numbers):
    (contracted, batch) = numbers.dot_dimension_numbers
    return tuple(tuple(map(int, each)) for each in (
        *contracted, *batch, numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions))


def _run(name, lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset, out_sharding,
         elsewhere):
    lhs, rhs, sizes = (_array(each, of) for each, of in (
        (lhs, "lhs"), (rhs, "rhs"), (group_sizes, "group_sizes")))
    offset = None if group_offset is None else _array(group_offset, "group_offset")
    result = np.dtype(lhs.dtype if preferred_element_type is None else preferred_element_type)
    kind = _kind_of(numbers)
    reason = SHARDING if out_sharding is not None else _refuse(lhs, rhs, sizes, result, offset, kind)
    if reason is None and kind == "sums" and offset is not None:
        reason = OFFSET
    if _count(name, reason) is not None:
        return elsewhere()
    offset = None if offset is None else offset.reshape(()).astype(jnp.int32)
    lhs, rhs, sizes, offset = _along_same_axes(lhs, rhs, sizes, offset)
    if kind == "sums":
        return _by_sums(result, lhs, rhs, sizes)
    return _by_rows(_Form(kind == "turned", result), lhs, rhs, sizes, offset)


def _array(given, name):
    try:
        return jnp.asarray(given)
    except TypeError as reason:
        raise TypeError(f"{name} is no array of JAX: {reason}") from reason


def ragged_dot(lhs, rhs, group_sizes, precision=None, preferred_element_type=None, group_offset=None,
               out_sharding=None):
    """Multiplies groups of rows as `jax.lax.ragged_dot` does: lhs [rows, k], rhs [groups, k, n] and
    group_sizes [groups] give [rows, n]. Rows past the last group become zero.

    `preferred_element_type` is the operands' type or float32. Sums are in f32 with any
    `precision`. With `group_offset`, a scalar or [1], rhs has the matrices of the groups from that
    one on. Rows of other groups become zero.

    It goes with `jit`, `vmap`, `grad` and `shard_map`. The gradient of the result is rounded to the
    operands' type. Forward-mode derivatives need `jax.lax.ragged_dot`."""
    return _run("ragged_dot", lhs, rhs, group_sizes, _BY_ROWS[False], precision, preferred_element_type,
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
    values, sizes = _array(values, name), _array(group_sizes, "group_sizes")
    if values.ndim < rank:
        raise ValueError(f"{name} has {values.ndim} dims; it has {rank} at least")
    if sizes.ndim != 1 or not jnp.issubdtype(sizes.dtype, jnp.integer):
        raise TypeError(f"group_sizes is integers in one dim, not {sizes.dtype} {sizes.shape}")
    if rank == 2 and sizes.shape[0] != values.shape[0]:
        raise ValueError(f"group_sizes has {sizes.shape[0]} sizes; {name} has {values.shape[0]} slots")
    return values, sizes
