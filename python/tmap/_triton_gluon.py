# SPDX-License-Identifier: Apache-2.0
"""`tmap.triton.gluon`: the same for kernels of Gluon."""
from triton.experimental import gluon
from triton.experimental.gluon.language._core import builtin
from triton.experimental.gluon.language import block_type, constexpr
from triton.experimental.gluon.language.nvidia.hopper.tma import tensor_descriptor
from triton.language.core import _unwrap_if_constexpr

from . import _triton_lowering as lowering

_LOWERING: constexpr = lowering.LOWERING


@builtin
def _descriptor(maps, index, block_shape, layout, made_by, _semantic=None, _generator=None):
    lowering.check_target(_semantic)
    block, layout = lowering.check_arguments(maps, block_shape), _unwrap_if_constexpr(layout)
    kind = block_type(maps.type.element_ty, block)
    made = tensor_descriptor(None, (), (), kind, layout)
    types = []
    made.type._flatten_ir_types(_semantic.builder, types)
    made.handle = lowering.descriptor_of(lowering.acquired(maps, index, _semantic), types[0], _semantic, _generator)
    return made


@gluon.jit
def tensor_map(maps, index, block_shape: constexpr, layout: constexpr):
    """Acquires map `index` of an array and returns it as a descriptor for `tma` of Hopper. `layout`
    is the `NVMMASharedLayout` of the shared memory, which has the maps' swizzle."""
    return _descriptor(maps, index, block_shape, layout, _LOWERING)
