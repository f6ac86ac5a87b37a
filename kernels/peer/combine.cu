// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>
#include <tmap/moe.hpp>

#include <algorithm>
#include <cstdint>

#include "kernels/load_kernel.hpp"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/send_sums.cuh"
#include "kernels/peer/take_sums.cuh"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

/// Senders come first. They end without the takers, which must all run at the same time. So the
/// senders of another rank of the same GPU run in the end.
template <class Element>
__global__ void __launch_bounds__(combine_threads, 1)
    combine_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ combine_work work,
                   std::uint64_t patience) {
  cudaGridDependencySynchronize();
  device::peer_link link(window);
  const peer_verdict dispatched = peer::outcome_of(link, work.request.outcome, work.request.shape);
  if (dispatched.status == peer_status::ok) {
    if (blockIdx.x < work.senders) {
      send_sums<Element>(link, window, work);
    } else {
      take_sums<Element>(link, work, link.now() + patience);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) peer::end_sums(link, work.request, dispatched);
}

using combine_function = void (*)(peer_memory_ref, combine_work, std::uint64_t);

combine_function combine_of(moe::float_type type) {
  static_assert(moe::max_k <= device::warp_lanes && max_group_ranks <= device::warp_lanes);
  switch (type) {
    case moe::float_type::f32: return combine_kernel<float>;
    case moe::float_type::bf16: return combine_kernel<__nv_bfloat16>;
    default: return combine_kernel<__half>;
  }
}

/// Returns how many blocks of so many warps have a part of the sums for each warp.
std::uint32_t blocks_for(std::uint64_t sums, std::uint32_t units, std::uint32_t warps, std::uint32_t most) {
  constexpr std::uint32_t units_of_part = device::warp_lanes * summed_units;
  const std::uint64_t parts = sums * ((units + units_of_part - 1) / units_of_part);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>((parts + warps - 1) / warps, 1, most));
}

/// Returns how many blocks send. A quarter of an H200 keeps the link busy with sums of one row.
/// Those of several rows take up to a half. Few sums are sent soonest if each warp has one part.
std::uint32_t senders_of(const combine_work& work, std::uint32_t ranks, std::uint32_t multiprocessors) {
  const std::uint64_t foreign = work.arrivals * (ranks - 1) / ranks;
  const std::uint32_t half = std::max(multiprocessors / 2, 1u);
  const std::uint32_t wanted = blocks_for(foreign, work.request.place.units(), sending_warps, half + 1);
  return wanted <= half ? wanted : std::clamp(multiprocessors * (8 + work.came.k / ranks) / 32, 1u, half);
}

}  // namespace

cudaError_t load_combine(moe::float_type type) {
  return load(combine_of(type));
}

cudaError_t launch_combine(const peer_memory_ref& window, const combine_work& given, std::uint32_t multiprocessors,
                           std::uint64_t patience, cudaStream_t stream) {
  combine_work work = given;
  const std::uint32_t units = work.request.place.units();
  work.senders = senders_of(work, window.ranks, multiprocessors);
  const std::uint32_t left = multiprocessors - std::max(work.senders, multiprocessors / 4);
  work.request.blocks = work.senders + blocks_for(work.tokens, units, combine_warps, std::max(left, 1u));
  return launch_behind(combine_of(work.came.type), {work.request.blocks, combine_threads}, stream, window, work,
                       patience);
}

}  // namespace tmap::kernels
