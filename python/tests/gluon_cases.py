# SPDX-License-Identifier: Apache-2.0
"""A kernel of Gluon that copies a tile from one map to another."""
from triton import compile
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma

from tmap.triton import gluon as maps_of_gluon

BLOCK = 64
# Newer versions of Gluon call them so.
load_tile = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
store_tile = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


@gluon.jit
def copy_tile(maps, out, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    source = maps_of_gluon.tensor_map(maps, gl.program_id(0), [BLOCK, BLOCK], layout)
    target = maps_of_gluon.tensor_map(out, gl.program_id(0), [BLOCK, BLOCK], layout)
    tile = gl.allocate_shared_memory(gl.bfloat16, [BLOCK, BLOCK], layout)
    loaded = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(loaded, count=1)
    mbarrier.expect(loaded, BLOCK * BLOCK * 2)
    load_tile(source, [0, 0], loaded, tile)
    mbarrier.wait(loaded, 0)
    mbarrier.invalidate(loaded)
    fence_async_shared()
    store_tile(target, [0, 0], tile)
    tma.store_wait(0)


def compiled(target):
    return compile(GluonASTSource(copy_tile, {"maps": "*bf16", "out": "*bf16", "BLOCK": "constexpr"}, {"BLOCK": BLOCK}),
                   target=target)
