# SPDX-License-Identifier: Apache-2.0
"""Lets kernels of Triton load and store tiles through tensor maps that were made on the GPU.

A kernel takes an array of maps, `tensor_maps(batch, block)`, and calls `tensor_map` for the
descriptor of one of them. `modes` states the box and swizzle that Triton expects of a map. The
kernel needs no scratch memory and no allocator. `tmap.triton.gluon` has `tensor_map` for Gluon.

    >>> block = [64, 64]
    >>> batch = service.encode_ragged(values, ends, **tmap.triton.modes("bf16", block))
    >>> kernel[(len(batch),)](tmap.triton.tensor_maps(batch, block), ...)
"""
import triton as _triton
import triton.language as tl
from triton.language import core

from . import _triton_lowering as _lowering
from ._arrays import Site
from ._lease import MapBatch
from ._spec import TensorSpec
from ._triton_blocks import DTYPES, check_block, modes, spec

try:
    from . import _triton_gluon as gluon
except ImportError:  # a Triton whose Gluon has other names
    gluon = None

__all__ = ["TensorMaps", "gluon", "modes", "spec", "tensor_map", "tensor_maps"]
_LOWERING: tl.constexpr = _lowering.LOWERING
_MAP_BYTES = 128


class TensorMaps:
    """A kernel parameter: an array of maps of one box. Triton sees a pointer to their elements."""

    def __init__(self, address: int, dtype: str, owner):
        self.dtype = dtype
        self._address, self._owner = address, owner

    def data_ptr(self) -> int:
        """Returns the address of the first map. Triton calls it at each launch."""
        if isinstance(self._owner, MapBatch):
            self._owner.check_lent()
        return self._address


def tensor_maps(maps, block, *, dtype=None, spec: TensorSpec = None) -> TensorMaps:
    """Makes a kernel parameter of maps through which a kernel moves blocks, outermost first.

    `maps` is a `MapBatch`, or device memory of uint8 [n, 128] with the `spec` that its maps have in
    common. `dtype` names elements of the same width as the maps', such as "f8_e4m3" for maps of u8.
    The kernel must run on one of the batch's streams, before its release. Raises `ValueError` or
    `TypeError` if the maps' box, swizzle or elements are not those that Triton expects.
    """
    if isinstance(maps, MapBatch):
        if spec is not None:
            raise TypeError("spec is given, but maps is a MapBatch, which has its own: leave it out")
        address, given = int.from_bytes(maps.ref[:8], "little"), maps.spec
    else:
        if not isinstance(spec, TensorSpec):
            raise TypeError(f"spec is {spec!r}: it must be the TensorSpec that the array's maps have in common")
        site = Site(None, maps)
        if site.on_host:
            raise ValueError("maps is in memory of the host: kernels take maps in device memory")
        view = site.read(maps, "maps", ("u8",), rank=2)
        if view.shape[1] != _MAP_BYTES or not view.is_packed or view.address % _MAP_BYTES:
            raise ValueError(f"maps has the shape {view.shape} at address {view.address:#x}: it must be [n, {_MAP_BYTES}] "
                             f"without gaps, at a multiple of {_MAP_BYTES}")
        address, given = view.address, spec
    return TensorMaps(address, DTYPES[check_block(given, dtype, block)], maps)


@core.builtin
def _descriptor(maps, index, block_shape, made_by, _semantic=None, _generator=None):
    _lowering.check_target(_semantic)
    kind = tl.block_type(maps.type.element_ty, _lowering.check_arguments(maps, block_shape))
    types = []
    core.tensor_descriptor_base_type(kind)._flatten_ir_types(_semantic.builder, types)
    address = _lowering.acquired(maps, index, _semantic)
    return core.tensor_descriptor_base(_lowering.descriptor_of(address, types[0], _semantic, _generator), kind)


@_triton.jit
def tensor_map(maps, index, block_shape: tl.constexpr):
    """Acquires map `index` of an array and returns it as a tensor descriptor, with `load`, `store`,
    `atomic_add` and the like. Call it outside of loops that Triton pipelines."""
    return _descriptor(maps, index, block_shape, _LOWERING)
