// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>

#include <cstdint>

#include "kernels/load_kernel.hpp"
#include "kernels/moe/add_rows.cuh"
#include "kernels/peer/expert_records.hpp"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/protocol_gather.hpp"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

using device::peer_link;
using device::tile_barrier;

constexpr std::uint32_t gather_threads = 1024;
/// The first warp has the thread that leads; the others move rows.
constexpr std::uint32_t moving_threads = gather_threads - device::warp_lanes;
constexpr std::uint32_t sums_at_once = 4;

struct gather_work {
  peer::exchange_request request;
  home_sums sums;
};

/// Holds what the threads of a block share.
struct gather_team {
  tile_barrier begun, done;
  bool has_rows;

  /// All threads call it.
  __device__ void init() {
    if (threadIdx.x == 0) {
      begun.init(1);
      done.init(moving_threads);
      device::fence_barrier_init();
    }
    __syncthreads();
  }
};

/// Lets the other threads of the block work.
class gather_leader {
 public:
  explicit __device__ gather_leader(gather_team& team) : team_(team) {}

  __device__ void work() {
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

  gather_team& team_;
  bool has_begun_{false};
};

/// Runs a call by all threads of a block. The first thread leads, and `work` runs in those after
/// the first warp, with their worker of all blocks. All blocks must run at the same time.
template <class Work>
__device__ void gather_by_block(const peer_memory_ref& window, const peer::exchange_request& given,
                                std::uint64_t patience, const Work& work) {
  __shared__ gather_team team;
  team.init();
  cudaGridDependencySynchronize();
  if (threadIdx.x >= device::warp_lanes) {
    team.begun.wait(0);
    const std::uint32_t first = blockIdx.x * moving_threads - device::warp_lanes;
    if (team.has_rows) work(peer::worker{first + threadIdx.x, gridDim.x * moving_threads});
    team.done.arrive();
  } else if (threadIdx.x == 0) {
    peer::exchange_request request = given;
    request.block = blockIdx.x;
    request.blocks = gridDim.x;
    peer_link link(window);
    gather_leader leader(team);
    static_cast<void>(peer::gather(link, request, link.now() + patience, leader));
  }
}

/// Finds the sums of a token in the windows of all ranks.
struct rows_in_windows {
  const peer_memory_ref& window;
  const gather_work& work;
  const peer::rows_for_me<peer_link>& sums;
  std::uint64_t end;  ///< of the token's choices

  __device__ std::int32_t row(std::uint64_t choice) const {
    return choice < end ? work.sums.record_of_choice[choice] : -1;
  }
  __device__ float weight(std::uint64_t) const { return 1; }
  __device__ bool has(std::int32_t row) const { return row >= 0; }
  __device__ const uint4* at(std::int32_t row, std::uint64_t unit) const {
    const peer::row_place from = sums.find(static_cast<std::uint32_t>(row));
    return reinterpret_cast<const uint4*>(window.windows[from.rank] + from.offset) + unit;
  }
};

/// Adds up a worker's share of all units of 16 bytes.
template <class Element>
__device__ void add_home(const peer_memory_ref& window, const gather_work& work, const peer::worker& mine) {
  peer_link link(window);
  const peer::rows_for_me<peer_link> found(link, work.request);
  const home_sums& to = work.sums;
  const std::uint32_t units = work.request.row_bytes / unit_bytes;
  peer::share(mine, std::uint64_t{to.tokens} * units, [&](std::uint64_t i) {
    const auto token = static_cast<std::uint32_t>(i / units), unit = static_cast<std::uint32_t>(i % units);
    float sums[unit_of<Element>::count]{};
    if (to.base.address != 0) unit_of<Element>::read(*unit_at(to.base, token, unit), sums);
    const std::uint64_t first = std::uint64_t{token} * to.k;
    const rows_in_windows rows{window, work, found, first + to.k};
    TMAP_KEEP_ROLLED
    for (std::uint64_t j = first; j < rows.end; j += sums_at_once) add_rows<Element, sums_at_once>(rows, j, unit, sums);
    *unit_at(to.out, token, unit) = unit_of<Element>::write(sums);
  });
}

template <class Element>
__global__ void __launch_bounds__(gather_threads)
    gather_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ gather_work work,
                  std::uint64_t patience) {
  gather_by_block(window, work.request, patience,
                  [&](const peer::worker& mine) { add_home<Element>(window, work, mine); });
}

/// Brings a worker's share of all units of 16 bytes to all their places.
__device__ void place_rows(const peer_memory_ref& window, const peer::fetch_request& request,
                           const peer::worker& mine) {
  peer_link link(window);
  const peer::listed_rows<peer_link> listed(link, request);
  const auto unit_in = [&](std::uint32_t rank, std::uint64_t offset, std::uint32_t unit) {
    return reinterpret_cast<uint4*>(window.windows[rank] + offset) + unit;
  };
  const std::uint32_t units = request.call.row_bytes / unit_bytes;
  peer::share(mine, std::uint64_t{listed.count()} * units, [&](std::uint64_t i) {
    const auto entry = static_cast<std::uint32_t>(i / units), unit = static_cast<std::uint32_t>(i % units);
    const peer::row_place from = listed.find(entry);
    if (from.offset == 0) return;
    const uint4 value = *unit_in(from.rank, from.offset, unit);
    TMAP_KEEP_ROLLED
    for (std::uint32_t number = 0; number < request.places; ++number) {
      const std::uint64_t target = listed.target(entry, number);
      if (target != 0) *unit_in(window.rank, target, unit) = value;
    }
  });
}

__global__ void __launch_bounds__(gather_threads)
    place_rows_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ peer::fetch_request given,
                      std::uint64_t patience) {
  gather_by_block(window, given.call, patience, [&](const peer::worker& mine) { place_rows(window, given, mine); });
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
  const cudaError_t code = load(gather_for(type));
  return code == cudaSuccess ? load(place_rows_kernel) : code;
}

cudaError_t launch_place_rows(const peer_memory_ref& window, const peer::fetch_request& request, std::uint64_t patience,
                              cudaStream_t stream) {
  return launch_behind(place_rows_kernel, {request.call.blocks, gather_threads}, stream, window, request, patience);
}

cudaError_t launch_gather(const peer_memory_ref& window, const peer::exchange_request& request, const home_sums& sums,
                          std::uint64_t patience, cudaStream_t stream) {
  const gather_work work{request, sums};
  return launch_behind(gather_for(sums.type), {request.blocks, gather_threads}, stream, window, work, patience);
}

}  // namespace tmap::kernels
