// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>

#include <cstdint>

#include "kernels/load_kernel.hpp"
#include "kernels/moe/add_rows.cuh"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/protocol_gather.hpp"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

using device::peer_link;
using device::tile_barrier;

constexpr std::uint32_t gather_threads = 1024;
/// The first warp has the thread that leads; the others add up.
constexpr std::uint32_t adding_threads = gather_threads - device::warp_lanes;
constexpr std::uint32_t sums_at_once = 4;

struct gather_work {
  peer::exchange_request request;
  home_sums sums;
};

/// Holds what the threads of a block share.
struct gather_team {
  tile_barrier begun, done;
  peer::rows_of_ranks rows;
  bool has_rows;
};

/// Finds the sums of a token in the windows of all ranks.
struct rows_in_windows {
  const peer_memory_ref& window;
  const gather_work& work;
  const peer::rows_of_ranks& found;
  std::uint64_t end;  ///< of the token's choices

  __device__ std::int32_t row(std::uint64_t choice) const {
    return choice < end ? work.sums.record_of_choice[choice] : -1;
  }
  __device__ float weight(std::uint64_t) const { return 1; }
  __device__ bool has(std::int32_t row) const { return row >= 0; }
  __device__ const uint4* at(std::int32_t row, std::uint64_t unit) const {
    const auto number = static_cast<std::uint32_t>(row);
    const std::uint32_t rank = found.rank_of(number);
    const std::uint64_t offset = found.begins[rank] + std::uint64_t{number} * work.request.row_bytes;
    return reinterpret_cast<const uint4*>(window.windows[rank] + offset) + unit;
  }
};

/// Adds up this block's share of all units of 16 bytes, by the threads after the first warp.
template <class Element>
__device__ void add_home(const peer_memory_ref& window, const gather_work& work, const peer::rows_of_ranks& found) {
  const home_sums& to = work.sums;
  const std::uint32_t units = work.request.row_bytes / unit_bytes;
  const std::uint64_t all = std::uint64_t{to.tokens} * units;
  const std::uint32_t thread = threadIdx.x - device::warp_lanes;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * adding_threads + thread; i < all;
       i += gridDim.x * adding_threads) {
    const auto token = static_cast<std::uint32_t>(i / units), unit = static_cast<std::uint32_t>(i % units);
    float sums[unit_of<Element>::count]{};
    if (to.base.address != 0) unit_of<Element>::read(*unit_at(to.base, token, unit), sums);
    const std::uint64_t first = std::uint64_t{token} * to.k;
    const rows_in_windows rows{window, work, found, first + to.k};
    for (std::uint64_t j = first; j < rows.end; j += sums_at_once) add_rows<Element, sums_at_once>(rows, j, unit, sums);
    *unit_at(to.out, token, unit) = unit_of<Element>::write(sums);
  }
}

/// Leads the threads of a block.
class gather_leader {
 public:
  __device__ gather_leader(peer_link& link, const peer::exchange_request& request, gather_team& team)
      : link_(link), request_(request), team_(team) {}

  __device__ void work() {
    team_.rows.find(link_, request_);
    begin(true);
    team_.done.wait(0);
  }
  __device__ void dismiss() {
    if (!has_begun_) begin(false);
  }

 private:
  __device__ void begin(bool has_rows) {
    team_.has_rows = has_rows;
    has_begun_ = true;
    team_.begun.arrive();
  }

  peer_link& link_;
  const peer::exchange_request& request_;
  gather_team& team_;
  bool has_begun_{false};
};

/// Runs in each of the blocks that share a gather. They must all run at the same time.
template <class Element>
__global__ void __launch_bounds__(gather_threads)
    gather_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ gather_work work,
                  std::uint64_t patience) {
  __shared__ gather_team team;
  if (threadIdx.x == 0) {
    team.begun.init(1);
    team.done.init(adding_threads);
    device::fence_barrier_init();
  }
  __syncthreads();
  cudaGridDependencySynchronize();
  if (threadIdx.x >= device::warp_lanes) {
    team.begun.wait(0);
    if (team.has_rows) add_home<Element>(window, work, team.rows);
    team.done.arrive();
    return;
  }
  if (threadIdx.x != 0) return;
  peer::exchange_request request = work.request;
  request.block = blockIdx.x;
  request.blocks = gridDim.x;
  peer_link link(window);
  gather_leader leader(link, request, team);
  static_cast<void>(peer::gather(link, request, link.now() + patience, leader));
}

using gather_function = void (*)(peer_memory_ref, gather_work, std::uint64_t);

gather_function gather_for(moe::float_type type) {
  switch (type) {
    case moe::float_type::f32: return gather_kernel<float>;
    case moe::float_type::bf16: return gather_kernel<__nv_bfloat16>;
    default: return gather_kernel<__half>;
  }
}

}  // namespace

cudaError_t load_gather(moe::float_type type) {
  return load(gather_for(type));
}

cudaError_t launch_gather(const peer_memory_ref& window, const peer::exchange_request& request, const home_sums& sums,
                          std::uint64_t patience, cudaStream_t stream) {
  const gather_work work{request, sums};
  return launch_behind(gather_for(sums.type), {request.blocks, gather_threads}, stream, window, work, patience);
}

}  // namespace tmap::kernels
