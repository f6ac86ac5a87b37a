# SPDX-License-Identifier: Apache-2.0
"""Registers the handlers of libtmap.so with XLA, and keeps arrays in step with the axes of a
`shard_map`."""
from ctypes import c_void_p
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._library import lib


@lru_cache(maxsize=None)
def register() -> None:
    """Gives XLA the handlers of libtmap.so. Only a process that runs a program of `jax.export`
    needs it: the calls do it themselves."""
    for name in ("tmap_xla_rows", "tmap_xla_weights", "tmap_xla_pad_rows", "tmap_xla_unpad_rows"):
        function = getattr(lib, name)
        function.argtypes, function.restype = (c_void_p,), c_void_p
        try:
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform="CUDA")
        except Exception as reason:
            raise RuntimeError(f"tmap.jax: jaxlib {jax.lib.__version__} refuses the handler {name}: "
                               f"{reason}. Use jaxlib 0.11, or jax.lax.ragged_dot") from reason


def call_handler(name, results, operands, vmap_method, **attributes):
    """Calls a handler and returns its first result."""
    register()
    result = jax.ffi.ffi_call(name, results, vmap_method=vmap_method)(*operands, **attributes)[0]
    # JAX does not see that the result differs where the operands do.
    return varying(result, axes_of(*operands))


@lru_cache(maxsize=None)
def has_other_gpu():
    """Returns whether JAX has a GPU on which the products do not run. Without one, a program may be
    exported for Hopper."""
    try:
        devices = jax.devices("cuda")
    except RuntimeError:
        return False
    return any(str(device.compute_capability) != "9.0" for device in devices)


def axes_of(*arrays):
    """Returns the axes of a `shard_map` along which any of the arrays differs."""
    kinds = [jax.typeof(each) for each in arrays]
    return frozenset().union(*(kind.manual_axis_type.varying if hasattr(kind, "manual_axis_type") else kind.vma
                               for kind in kinds))


def varying(array, axes):
    missing = axes - axes_of(array)
    return lax.pcast(array, tuple(missing), to="varying") if missing else array


def along_same_axes(*arrays):
    """Makes arrays differ along the same axes of a `shard_map`, so that a gradient of one that does
    not differ is summed over them."""
    axes = axes_of(*(each for each in arrays if each is not None))
    return [None if each is None else varying(each, axes) for each in arrays]


def array_of(given, name):
    try:
        return jnp.asarray(given)
    except TypeError as reason:
        raise TypeError(f"{name} is no array of JAX: {reason}") from reason


def no_gradient(array):
    return None if array is None else np.zeros(array.shape, jax.dtypes.float0)
