// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>
#include <tmap/moe.hpp>

#include <algorithm>

#include "kernels/load_kernel.hpp"
#include "kernels/peer/expert_list.hpp"
#include "kernels/peer/expert_returns.hpp"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

using device::peer_link;
using device::tile_barrier;

constexpr std::uint32_t plan_threads = 256;
constexpr std::uint32_t most_plan_blocks = 2048;

/// Holds the parameters of the kernels that touch the own window alone.
struct dispatch_work {
  peer::expert_arrays at;
  peer::token_choices given;
  std::uint64_t departures;
  float* row_scales;
};

/// Returns this thread among those of the grid.
__device__ peer::worker thread_of_grid() {
  return {std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x, std::uint64_t{gridDim.x} * blockDim.x};
}
__device__ peer::worker warp_of(const peer::worker& thread) {
  return {thread.number / device::warp_lanes, thread.count / device::warp_lanes};
}
__device__ peer::worker lane_of_warp() {
  return {threadIdx.x % device::warp_lanes, device::warp_lanes};
}

/// Lets the next kernel get ready, and waits for the work of the one before.
__device__ void wait_for_kernel_before() {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}

__global__ void __launch_bounds__(plan_threads)
    write_ranks_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ dispatch_work work) {
  wait_for_kernel_before();
  peer_link link(window);
  peer::share(thread_of_grid(), std::uint64_t{work.at.tokens} * work.at.k, [&](std::uint64_t choice) {
    peer::write_rank(link, work.at, work.given, static_cast<std::uint32_t>(choice));
  });
}

__global__ void __launch_bounds__(plan_threads)
    write_records_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ dispatch_work work) {
  wait_for_kernel_before();
  peer_link link(window);
  peer::write_records(link, work.at, work.given, work.departures, {warp_of(thread_of_grid()), lane_of_warp()});
}

__global__ void __launch_bounds__(plan_threads)
    write_choices_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ dispatch_work work) {
  wait_for_kernel_before();
  peer_link link(window);
  peer::write_choices(link, work.at, thread_of_grid());
}

/// Puts one scale of a record to all rows of its token.
__device__ void put_scale(peer_link& link, const dispatch_work& work, std::uint64_t record, std::uint32_t number) {
  const std::uint32_t me = link.rank();
  const std::uint32_t word = peer::record::experts + 2 * work.at.k + number;
  const std::uint32_t scale = link.load(me, peer::record_word(work.at, work.at.arriving, record, word));
  for (std::uint32_t j = 0; j < work.at.k; ++j) {
    const std::uint32_t place = link.load(me, peer::word_at(work.at.places, record * work.at.k + j));
    if (place == peer::none) continue;
    work.row_scales[std::uint64_t{place} * work.at.scales + number] = __uint_as_float(scale);
  }
}

/// Puts this thread's share of all scales.
__device__ void put_scales(peer_link& link, const dispatch_work& work) {
  const std::uint32_t total = link.load(link.rank(), work.at.total);
  peer::share(thread_of_grid(), std::uint64_t{total} * work.at.scales, [&](std::uint64_t i) {
    put_scale(link, work, i / work.at.scales, static_cast<std::uint32_t>(i % work.at.scales));
  });
}

__global__ void __launch_bounds__(plan_threads)
    write_list_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ dispatch_work work) {
  wait_for_kernel_before();
  peer_link link(window);
  peer::write_list(link, work.at, {warp_of(thread_of_grid()), lane_of_warp()});
  if (work.row_scales != nullptr) put_scales(link, work);
}

__global__ void __launch_bounds__(plan_threads)
    put_scales_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ dispatch_work work) {
  wait_for_kernel_before();
  peer_link link(window);
  put_scales(link, work);
}

__global__ void __launch_bounds__(plan_threads)
    write_returns_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ dispatch_work work) {
  wait_for_kernel_before();
  peer_link link(window);
  peer::write_returns(link, work.at, thread_of_grid());
}

/// Runs in each of the blocks that share a fetch. They must all run at the same time.
__global__ void __launch_bounds__(1)
    fetch_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ peer::fetch_request given,
                 std::uint64_t patience) {
  extern __shared__ __align__(128) unsigned char staging[];
  __shared__ tile_barrier gets[peer::fetch_sets];
  __shared__ peer::fetch_piece pieces[peer::most_fetch_stages];
  __shared__ peer::packet taken[peer::most_taken_packets];
  for (tile_barrier& each : gets) each.init(1);
  device::fence_barrier_init();
  cudaGridDependencySynchronize();
  peer::fetch_request request = given;
  request.call.block = blockIdx.x;
  request.call.blocks = gridDim.x;
  peer_link link(window, staging, gets, taken);
  static_cast<void>(peer::fetch(link, request, pieces, link.now() + patience));
}

/// Returns the bytes of the parts of a list in shared memory.
constexpr std::uint32_t list_bytes(std::uint32_t places) {
  return peer::fetch_banks * peer::most_fetch_entries * peer::entry_words(places) *
         static_cast<std::uint32_t>(peer::word_bytes);
}
// Launches differ in their bytes, and the limit belongs to the kernel.
constexpr std::uint32_t most_fetch_bytes = peer::most_staging_bytes + list_bytes(moe::max_k);

/// Launches a kernel with a thread for each item, up to a bound.
cudaError_t launch_items(void (*kernel)(peer_memory_ref, dispatch_work), const dispatch_call& call,
                         std::uint64_t items) {
  const std::uint64_t blocks =
      std::clamp<std::uint64_t>((items + plan_threads - 1) / plan_threads, 1, most_plan_blocks);
  const dispatch_work work{call.at, call.given, call.departures, call.row_scales};
  return launch_behind(kernel, {static_cast<std::uint32_t>(blocks), plan_threads}, call.stream, call.window, work);
}

}  // namespace

cudaError_t load_dispatch_kernels() {
  cudaError_t code = load(write_ranks_kernel);
  if (code == cudaSuccess) code = load(write_records_kernel);
  if (code == cudaSuccess) code = load(write_choices_kernel);
  if (code == cudaSuccess) code = load(write_list_kernel);
  if (code == cudaSuccess) code = load(put_scales_kernel);
  if (code == cudaSuccess) code = load(write_returns_kernel);
  if (code == cudaSuccess) code = load(fetch_kernel);
  return code == cudaSuccess ? load_dispatch_few() : code;
}

cudaError_t launch_write_ranks(const dispatch_call& call) {
  return launch_items(write_ranks_kernel, call, std::uint64_t{call.at.tokens} * call.at.k);
}

cudaError_t launch_write_records(const dispatch_call& call) {
  return launch_items(write_records_kernel, call, call.departures * device::warp_lanes);
}

cudaError_t launch_write_choices(const dispatch_call& call) {
  return launch_items(write_choices_kernel, call, std::uint64_t{call.at.arrivals} * call.at.k);
}

cudaError_t launch_write_list(const dispatch_call& call) {
  const std::uint32_t threads = std::max(device::warp_lanes, call.at.scales);  // of an entry
  return launch_items(write_list_kernel, call, std::uint64_t{call.at.arrivals} * threads);
}

cudaError_t launch_put_scales(const dispatch_call& call) {
  return launch_items(put_scales_kernel, call, std::uint64_t{call.at.arrivals} * call.at.scales);
}

cudaError_t launch_write_returns(const dispatch_call& call) {
  return launch_items(write_returns_kernel, call, std::uint64_t{call.at.tokens} * call.at.k);
}

cudaError_t launch_fetch(const peer_memory_ref& window, const peer::fetch_request& request, std::uint64_t patience,
                         cudaStream_t stream) {
  launch_size size{request.call.blocks, 1};
  size.shared_bytes = request.call.stages * request.call.staging_bytes + list_bytes(request.places);
  size.most_shared_bytes = most_fetch_bytes;
  return launch_behind(fetch_kernel, size, stream, window, request, patience);
}

}  // namespace tmap::kernels
