// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>
#include <tmap/moe.hpp>

#include <algorithm>
#include <cstdint>

#include "kernels/load_kernel.hpp"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/sum_rows.cuh"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

constexpr std::uint32_t sum_threads = 128;
constexpr std::uint32_t sum_blocks = 5;  ///< of a multiprocessor at once

__device__ lane_row rows_of_part(const home_sums& of, const summed_parts& parts, std::uint32_t part) {
  return part < parts.count() ? load_rows(of, parts.row(part)) : lane_row{0, 0};
}

/// Adds up a part of a token, choice after choice.
template <class Element>
__device__ void add_token(const home_sums& of, const summed_part& part, const lane_row& mine) {
  unit_sums<Element> sums;
  begin_sums<Element>(part, of.base.address == 0 ? nullptr : unit_at(of.base, part.row(), 0), sums);
  add_rows<Element>(part, mine, lanes_with_rows(mine), sums);
  store_sums<Element>(part, sums, unit_at(of.out, part.row(), 0));
}

template <class Element>
__global__ void __launch_bounds__(sum_threads, sum_blocks)
    home_sums_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ home_sums of) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const device::peer_link link(window);
  if (!peer::is_success(link, offsetof(tmap::detail::peer::window_header, verdict))) return;
  constexpr std::uint32_t warps_of_block = sum_threads / device::warp_lanes;
  const std::uint32_t warps = gridDim.x * warps_of_block;
  const summed_parts parts(static_cast<std::uint32_t>(of.tokens), units_of(of), warps);
  std::uint32_t part = blockIdx.x * warps_of_block + warp_of_thread();
  lane_row mine = rows_of_part(of, parts, part);
  TMAP_KEEP_ROLLED
  while (part < parts.count()) {
    const lane_row of_next = rows_of_part(of, parts, part + warps);  // comes while this part is added up
    add_token<Element>(of, {parts, part}, mine);
    part += warps;
    mine = of_next;
  }
}

using sums_function = void (*)(peer_memory_ref, home_sums);

sums_function sums_of(moe::float_type type) {
  static_assert(moe::max_k <= device::warp_lanes);
  switch (type) {
    case moe::float_type::f32: return home_sums_kernel<float>;
    case moe::float_type::bf16: return home_sums_kernel<__nv_bfloat16>;
    default: return home_sums_kernel<__half>;
  }
}

}  // namespace

cudaError_t load_home_sums(moe::float_type type) {
  return load(sums_of(type));
}

cudaError_t launch_home_sums(const peer_memory_ref& window, const home_sums& of, std::uint32_t multiprocessors,
                             cudaStream_t stream) {
  const std::uint64_t blocks = (of.tokens * units_of(of) + sum_threads - 1) / sum_threads;
  const auto most = std::uint64_t{multiprocessors} * sum_blocks;
  return launch_behind(sums_of(of.type),
                       {static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 1, most)), sum_threads}, stream,
                       window, of);
}

}  // namespace tmap::kernels
