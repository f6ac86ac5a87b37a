// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>
#include <tmap/moe.hpp>

#include <algorithm>

#include "kernels/load_kernel.hpp"
#include "kernels/peer/expert_records.hpp"
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

__device__ std::uint64_t first_item() {
  return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ std::uint64_t all_threads() {
  return std::uint64_t{gridDim.x} * blockDim.x;
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
  for (std::uint64_t token = first_item(); token < work.at.tokens; token += all_threads()) {
    peer::write_ranks(link, work.at, work.given, static_cast<std::uint32_t>(token));
  }
}

/// Each warp writes a record.
__global__ void __launch_bounds__(plan_threads)
    write_records_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ dispatch_work work) {
  wait_for_kernel_before();
  peer_link link(window);
  const std::uint32_t me = link.rank();
  const auto free = peer::verdict_of(link.load(me, offsetof(peer::window_header, verdict)));
  if (free.status != peer_status::ok) return;
  const std::uint32_t words = peer::record_words(work.at.k, work.at.scales);
  for (std::uint64_t i = first_item() / device::warp_lanes; i < work.departures;
       i += all_threads() / device::warp_lanes) {
    const std::uint32_t token = link.load(me, peer::word_at(work.at.token_of_record, i));
    if (token >= work.at.tokens) continue;  // no record
    const auto record = static_cast<std::uint32_t>(i);
    const std::uint32_t rank = peer::rank_of_record(link, work.at, token, record);
    for (std::uint32_t word = threadIdx.x % device::warp_lanes; word < words; word += device::warp_lanes) {
      peer::write_record(link, work.at, work.given, record, token, rank, word);
    }
  }
}

__global__ void __launch_bounds__(plan_threads)
    write_choices_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ dispatch_work work) {
  wait_for_kernel_before();
  peer_link link(window);
  const std::uint32_t total = peer::count_arrived(link, work.at);
  if (first_item() == 0) link.store(link.rank(), work.at.total, total);
  const std::uint64_t choices = std::uint64_t{work.at.arrivals} * work.at.k;
  for (std::uint64_t i = first_item(); i < choices; i += all_threads()) peer::write_choice(link, work.at, i, total);
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

__global__ void __launch_bounds__(plan_threads)
    write_list_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ dispatch_work work) {
  wait_for_kernel_before();
  peer_link link(window);
  const std::uint32_t total = link.load(link.rank(), work.at.total);
  const std::uint32_t words = peer::entry_words(work.at.k);
  for (std::uint64_t i = first_item(); i < std::uint64_t{total} * words; i += all_threads()) {
    peer::write_entry(link, work.at, i / words, static_cast<std::uint32_t>(i % words));
  }
  if (work.row_scales == nullptr) return;
  for (std::uint64_t i = first_item(); i < std::uint64_t{total} * work.at.scales; i += all_threads()) {
    put_scale(link, work, i / work.at.scales, static_cast<std::uint32_t>(i % work.at.scales));
  }
}

__global__ void __launch_bounds__(plan_threads)
    write_returns_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ dispatch_work work) {
  wait_for_kernel_before();
  peer_link link(window);
  const auto rank = static_cast<std::uint32_t>(first_item());
  if (rank < link.ranks()) peer::write_return_count(link, work.at, rank);
  const std::uint64_t choices = std::uint64_t{work.at.tokens} * work.at.k;
  for (std::uint64_t i = first_item(); i < choices; i += all_threads()) {
    peer::write_return(link, work.at, static_cast<std::uint32_t>(i));
  }
}

/// Runs in each of the blocks that share a fetch. They must all run at the same time.
__global__ void __launch_bounds__(1)
    fetch_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ peer::fetch_request given,
                 std::uint64_t patience) {
  extern __shared__ __align__(128) unsigned char staging[];
  __shared__ tile_barrier gets[peer::fetch_sets];
  __shared__ peer::fetch_piece pieces[peer::most_fetch_stages];
  for (tile_barrier& each : gets) each.init(1);
  device::fence_barrier_init();
  peer::fetch_request request = given;
  request.call.block = blockIdx.x;
  request.call.blocks = gridDim.x;
  peer_link link(window, staging, gets);
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
  if (code == cudaSuccess) code = load(write_returns_kernel);
  if (code == cudaSuccess) code = load(fetch_kernel);
  return code;
}

cudaError_t launch_write_ranks(const dispatch_call& call) {
  return launch_items(write_ranks_kernel, call, call.at.tokens);
}

cudaError_t launch_write_records(const dispatch_call& call) {
  return launch_items(write_records_kernel, call, call.departures * device::warp_lanes);
}

cudaError_t launch_write_choices(const dispatch_call& call) {
  return launch_items(write_choices_kernel, call, std::uint64_t{call.at.arrivals} * call.at.k);
}

cudaError_t launch_write_list(const dispatch_call& call) {
  const std::uint32_t words = std::max(peer::entry_words(call.at.k), call.at.scales);
  return launch_items(write_list_kernel, call, std::uint64_t{call.at.arrivals} * words);
}

cudaError_t launch_write_returns(const dispatch_call& call) {
  return launch_items(write_returns_kernel, call, std::uint64_t{call.at.tokens} * call.at.k);
}

cudaError_t launch_fetch(const peer_memory_ref& window, const peer::fetch_request& request, std::uint64_t patience,
                         cudaStream_t stream) {
  launch_size size{request.call.blocks, 1};
  size.shared_bytes = request.call.stages * request.call.staging_bytes + list_bytes(request.places);
  size.most_shared_bytes = most_fetch_bytes;
  return plain_launch(fetch_kernel, size, stream, window, request, patience);
}

}  // namespace tmap::kernels
