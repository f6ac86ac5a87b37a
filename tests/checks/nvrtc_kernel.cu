// SPDX-License-Identifier: Apache-2.0
// Uses the device headers as kernels that are built at run time do. nvrtc.py compiles the two
// kernels.

#include <tmap/device/acquire.cuh>
#include <tmap/device/batch_writer.cuh>
#include <tmap/device/map_guard.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/device/reduce_copy.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/device/work_queue.cuh>
#include <tmap/map_batch_ref.hpp>

constexpr unsigned stages = 3, rows = 16, columns = 64, consumers = 128;

/// Adds up the first tiles of all tensors that the queue hands out.
extern "C" __global__ void add_first_tiles(tmap::map_batch_ref batch, const __grid_constant__ tmap::tensor_map sums,
                                           tmap::device::queue_counter* counter) {
  using namespace tmap::device;
  __shared__ alignas(128) float tiles[stages][rows][columns];
  __shared__ alignas(128) float sum[rows][columns];
  __shared__ ring_barriers<stages> barriers;
  if (threadIdx.x == 0) barriers.init(stages, consumers / warp_lanes);
  for (unsigned i = threadIdx.x; i < rows * columns; i += blockDim.x) sum[i / columns][i % columns] = 0;
  __syncthreads();
  work_queue queue(counter, batch.count, blockIdx.x, gridDim.x, asks::late);
  __shared__ unsigned tensors[stages];
  if (threadIdx.x == consumers) {
    ring_producer<stages> producer(barriers);
    for (unsigned tensor = 0; tensor != no_item;) {
      tensor = queue.take();
      const unsigned stage = producer.acquire_stage();
      tensors[stage] = tensor;
      tile_barrier& full = producer.announce(tensor == no_item ? 0 : sizeof(tiles[stage]));
      if (tensor != no_item) load_tile(tiles[stage], acquire(batch, tensor), {0, 0}, full);
    }
  } else if (threadIdx.x < consumers) {
    ring_consumer<stages> consumer(barriers);
    for (;;) {
      const unsigned stage = consumer.wait_full();
      if (tensors[stage] == no_item) break;
      for (unsigned i = threadIdx.x; i < rows * columns; i += consumers) {
        sum[i / columns][i % columns] += tiles[stage][i / columns][i % columns];
      }
      consumer.release_warp();
    }
    fence_shared_writes();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    reduce_tile<tmap::reduction::add, tmap::element_type::f32>(parameter_map(sums), {0, 0}, sum);
    commit_stores();
    wait_stores_written();
  }
}

__device__ tmap::device::guard_page page;

/// Makes the maps of a reserved batch. Launched with one warp.
extern "C" __global__ void make_maps(const __grid_constant__ tmap::map_template base,
                                     tmap::device::typed_rows<int> rows_of, tmap::map_batch_writer writer) {
  using namespace tmap::device;
  __shared__ warp_stage stage;
  const ragged_rows_reader<int> source(rows_of);
  encode_warp(base, source, writer, 0, writer.count, stage, map_guard{&page, writer.statuses});
}
