// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>
#include <tmap/moe.hpp>

#include <algorithm>
#include <cstdint>

#include "kernels/load_kernel.hpp"
#include "kernels/moe/row_units.cuh"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/row_shares.cuh"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

constexpr std::uint32_t sum_threads = 128;
constexpr std::uint32_t sum_blocks = 5;  ///< of a multiprocessor at once
/// Each lane has so many loads on its way: units of a row, and rows. Most choices of a token have
/// no row here, so a kernel that takes a unit of all choices waits for memory most of the time.
constexpr std::uint32_t summed_units = 4, sums_at_once = 2;

/// Names the row and the weight of one choice of a token, and where its sum goes. Lane j of a warp
/// has choice j.
struct lane_of_token {
  std::uint64_t row;  ///< 0: there is none
  float weight;
  std::uint64_t target;
};

/// Returns whether bytes lie in the user's bytes of some window. All lanes of a warp call it.
__device__ bool lie_in_window(const peer_memory_ref& window, std::uint64_t address, std::uint64_t bytes) {
  const std::uint32_t rank = lane_of_thread();
  if (bytes > window.bytes) return false;
  return __any_sync(~0u, rank < window.ranks && address - window.address(rank) <= window.bytes - bytes);
}

/// Walks over a warp's share of all tokens.
class sum_walk {
 public:
  __device__ sum_walk(const peer_sums& of, std::uint64_t tokens)
      : of_(&of),
        tokens_(static_cast<std::uint32_t>(tokens)),
        tokens_of_place_((tokens_ + of.places - 1) / of.places),
        share_({std::uint64_t{blockIdx.x} * (blockDim.x / device::warp_lanes) + threadIdx.x / device::warp_lanes,
                std::uint64_t{gridDim.x} * (blockDim.x / device::warp_lanes)},
               std::uint64_t{tokens_of_place_} * of.places, of.columns * moe::float_bytes(of.type) / unit_bytes) {}

  __device__ bool has_more() const { return share_.has_more(); }
  __device__ void go_on() { share_.go_on(); }
  __device__ const row_shares<summed_units>& share() const { return share_; }
  /// Returns the token. Some turns have none, after the last one.
  __device__ std::uint32_t token() const {
    return share_.row() % of_->places * tokens_of_place_ + share_.row() / of_->places;
  }
  __device__ bool has_token() const { return has_more() && token() < tokens_; }
  __device__ lane_of_token of_lane() const {
    if (!has_token()) return {0, 0, 0};
    const std::uint64_t to = target();
    if (lane_of_thread() >= of_->k) return {0, 0, to};
    const std::uint64_t choice = std::uint64_t{token()} * of_->k + lane_of_thread();
    const std::int32_t row = of_->row_of_choice[choice];
    if (row < 0 || static_cast<std::uint64_t>(row) >= of_->rows) return {0, 0, to};
    return {of_->values.address + static_cast<std::uint64_t>(row) * of_->values.pitch_bytes,
            of_->weights == nullptr ? 1.0f : of_->weights[choice], to};
  }

 private:
  __device__ std::uint64_t target() const {
    return of_->targets == nullptr ? of_->out.address + token() * of_->out.pitch_bytes : of_->targets[token()];
  }
  const peer_sums* of_;
  std::uint32_t tokens_;
  std::uint32_t tokens_of_place_;
  row_shares<summed_units> share_;
};

/// Adds a unit of a row, times its weight.
template <class Element>
__device__ void add_unit(const uint4& unit, float weight, float (&sums)[unit_of<Element>::count]) {
  float values[unit_of<Element>::count];
  unit_of<Element>::read(unit, values);
#pragma unroll
  for (std::uint32_t i = 0; i < unit_of<Element>::count; ++i) sums[i] = fmaf(weight, values[i], sums[i]);
}

/// Adds up this lane's units of a token, choice after choice.
template <class Element>
__device__ void add_token(const peer_sums& of, const sum_walk& walk, const lane_of_token& mine) {
  float sums[summed_units][unit_of<Element>::count]{};
  const row_shares<summed_units>& share = walk.share();
  if (of.base.address != 0) {
    share.each_unit([&](std::uint32_t i, std::uint32_t unit) {
      unit_of<Element>::read(*unit_at(of.base, walk.token(), unit), sums[i]);
    });
  }
  TMAP_KEEP_ROLLED
  for (std::uint32_t left = __ballot_sync(~0u, mine.row != 0); left != 0;) {
    uint4 units[sums_at_once][summed_units];
    float weights[sums_at_once];
    bool is_there[sums_at_once];
#pragma unroll
    for (std::uint32_t j = 0; j < sums_at_once; ++j) {
      is_there[j] = left != 0;
      if (!is_there[j]) continue;
      const std::uint32_t lane = first_lane(left);
      const auto* const from = reinterpret_cast<const uint4*>(value_of_lane(mine.row, lane));
      weights[j] = __shfl_sync(~0u, mine.weight, static_cast<int>(lane));
      left &= left - 1;
      share.each_unit([&](std::uint32_t i, std::uint32_t unit) { units[j][i] = from[unit]; });
    }
#pragma unroll
    for (std::uint32_t j = 0; j < sums_at_once; ++j) {
      if (!is_there[j]) continue;
      share.each_unit([&](std::uint32_t i, std::uint32_t) { add_unit<Element>(units[j][i], weights[j], sums[i]); });
    }
  }
  auto* const target = reinterpret_cast<uint4*>(mine.target);
  share.each_unit([&](std::uint32_t i, std::uint32_t unit) { target[unit] = unit_of<Element>::write(sums[i]); });
}

template <class Element>
__global__ void __launch_bounds__(sum_threads, sum_blocks)
    sums_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ peer_sums of) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const device::peer_link link(window);
  if (!peer::is_success(link, of.verdict, of.shape)) return;
  const std::uint64_t sum_bytes = of.columns * moe::float_bytes(of.type);
  std::uint64_t tokens = of.tokens;
  if (of.count != nullptr && *of.count < tokens) tokens = *of.count;
  sum_walk walk(of, tokens);
  lane_of_token mine = walk.of_lane();
  TMAP_KEEP_ROLLED
  while (walk.has_more()) {
    sum_walk next = walk;
    next.go_on();
    const lane_of_token of_next = next.of_lane();  // comes while this token is added up
    const bool may_store = of.targets == nullptr || lie_in_window(window, mine.target, sum_bytes);
    if (walk.has_token() && may_store) add_token<Element>(of, walk, mine);
    walk = next;
    mine = of_next;
  }
}

using sums_function = void (*)(peer_memory_ref, peer_sums);

sums_function sums_of(moe::float_type type) {
  static_assert(moe::max_k <= device::warp_lanes);
  switch (type) {
    case moe::float_type::f32: return sums_kernel<float>;
    case moe::float_type::bf16: return sums_kernel<__nv_bfloat16>;
    default: return sums_kernel<__half>;
  }
}

}  // namespace

cudaError_t load_peer_sums(moe::float_type type) {
  return load(sums_of(type));
}

cudaError_t launch_peer_sums(const peer_memory_ref& window, const peer_sums& of, std::uint32_t multiprocessors,
                             cudaStream_t stream) {
  const std::uint64_t units = of.columns * moe::float_bytes(of.type) / unit_bytes;
  const std::uint64_t blocks = (of.tokens * units + sum_threads - 1) / sum_threads;
  const auto most = std::uint64_t{multiprocessors} * sum_blocks;
  return launch_behind(sums_of(of.type),
                       {static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 1, most)), sum_threads}, stream,
                       window, of);
}

}  // namespace tmap::kernels
