# SPDX-License-Identifier: Apache-2.0
"""A kernel of CuTe DSL that copies tiles from maps of one batch to maps of another."""
import cutlass
from cuda.bindings import driver
from cutlass import cute
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.memory import SmemAllocator
from cutlass.tensor_utils import TensorMapManager, TensorMapUpdateMode

ROWS, LINE_BYTES, MAP_BYTES = 64, 128, 128  # a box has lines of 128 bytes, for a swizzle of 128 bytes
THREADS = 32
# The atoms take coordinates of a tensor of these extents, and maps of others.
MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 16


@cute.struct
class Shared:
    loaded: cute.struct.MemRange[cutlass.Int64, 1]
    tile: cute.struct.Align[cute.struct.MemRange[cutlass.Uint8, ROWS * LINE_BYTES], 1024]


def pointer(element, address, index, stride):
    """Returns a pointer to global memory `index` times `stride` bytes after an address."""
    return cute.make_ptr(element, address + stride * cutlass.Int64(index), cute.AddressSpace.gmem, assumed_align=stride)


@cute.kernel
def copy_tile(load: cute.CopyAtom, store: cute.CopyAtom, places: cute.Tensor, layout: cute.ComposedLayout,
              sources: cutlass.Int64, targets: cutlass.Int64, shift: cutlass.Int32, count: cutlass.Int32,
              element: cutlass.Constexpr):
    """Copies a tile of a tensor to the same place of another one. A shift of 1 is a fault."""
    thread, _, _ = cute.arch.thread_idx()
    column, row, block = cute.arch.block_idx()
    shared = SmemAllocator().allocate(Shared)
    loaded = shared.loaded.data_ptr()
    tile = cute.make_tensor(cute.recast_ptr(shared.tile.data_ptr(), layout.inner, dtype=element), layout.outer)
    manager = TensorMapManager(TensorMapUpdateMode.GMEM, MAP_BYTES)
    to, place = cpasync.tma_partition(
        load, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2),
        cute.group_modes(cute.local_tile(places, (ROWS, LINE_BYTES * 8 // element.width), (row, column)), 0, 2))
    if thread == 0:
        cute.arch.mbarrier_init(loaded, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_warp()
    source_map = pointer(cutlass.Int64, sources, (block + shift) % count, MAP_BYTES)
    target_map = pointer(cutlass.Int64, targets, block, MAP_BYTES)
    cpasync.fence_tma_desc_acquire(manager.get_tensormap_ptr(source_map))
    cpasync.fence_tma_desc_acquire(manager.get_tensormap_ptr(target_map))
    with cute.arch.elect_one():
        cute.arch.mbarrier_arrive_and_expect_tx(loaded, ROWS * LINE_BYTES)
    cute.copy(load, place, to, tma_bar_ptr=loaded,
              tma_desc_ptr=manager.get_tensormap_ptr(source_map, cute.AddressSpace.generic))
    cute.arch.mbarrier_wait(loaded, 0)
    cute.copy(store, to, place,
              tma_desc_ptr=manager.get_tensormap_ptr(target_map, cute.AddressSpace.generic))
    cute.arch.cp_async_bulk_commit_group()
    cute.arch.cp_async_bulk_wait_group(0)


@cute.jit
def copy_groups(sources: cutlass.Int64, targets: cutlass.Int64, shift: cutlass.Int32, count: cutlass.Int32,
                rows: cutlass.Int32, columns: cutlass.Int32, stream: driver.CUstream, element: cutlass.Constexpr):
    """Copies `rows` times `columns` tiles of each tensor. The addresses are those of the maps of
    two batches."""
    width = LINE_BYTES * 8 // element.width
    kind = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, element)
    layout = cute.tile_to_shape(kind, (ROWS, width), (0, 1))
    any_tensor = cute.make_tensor(pointer(element, sources, 0, MAP_BYTES),
                                  cute.make_layout((MOST_ROWS, MOST_COLUMNS), stride=(MOST_COLUMNS, 1)))
    load, places = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), any_tensor, layout, (ROWS, width))
    store, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), any_tensor, layout, (ROWS, width))
    copy_tile(load, store, places, layout, sources, targets, shift, count, element).launch(
        grid=(columns, rows, count), block=(THREADS, 1, 1), stream=stream)
