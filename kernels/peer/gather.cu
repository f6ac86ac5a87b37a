// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>

#include <cstdint>

#include "kernels/load_kernel.hpp"
#include "kernels/moe/row_units.cuh"
#include "kernels/peer/expert_records.hpp"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/protocol_gather.hpp"
#include "kernels/peer/row_shares.cuh"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

using device::peer_link;
using device::tile_barrier;

constexpr std::uint32_t gather_threads = 1024;
/// The first warp has the thread that leads; the others move rows.
constexpr std::uint32_t moving_threads = gather_threads - device::warp_lanes;
/// So many loads of a thread are on their way at once. With one for each thread, 16 blocks waited
/// for memory most of the time.
constexpr std::uint32_t placed_units = 4;

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

/// Runs a call by all threads of a block. The first thread leads. `work(link, warp, await_rows)`
/// runs in the warps after the first one, with their worker of all blocks. It may read
/// announcements and rows of peers once `await_rows` has returned true. All blocks must run at the
/// same time.
template <class Work>
__device__ void gather_by_block(const peer_memory_ref& window, const peer::fetch_request& given, std::uint64_t patience,
                                const Work& work) {
  __shared__ gather_team team;
  __shared__ peer::packet taken[peer::most_taken_packets];
  team.init();
  peer_link link(window, nullptr, nullptr, taken);
  cudaGridDependencySynchronize();
  if (threadIdx.x >= device::warp_lanes) {
    // Neighbours of a row are of different blocks, so that few rows keep all blocks busy.
    const std::uint32_t warp = threadIdx.x / device::warp_lanes - 1;
    work(link, peer::worker{warp * gridDim.x + blockIdx.x, gridDim.x * moving_threads / device::warp_lanes}, [&] {
      team.begun.wait(0);
      return team.has_rows;
    });
    team.done.arrive();
  } else if (threadIdx.x == 0) {
    peer::fetch_request request = given;
    request.call.block = blockIdx.x;
    request.call.blocks = gridDim.x;
    gather_leader leader(team);
    static_cast<void>(peer::gather(link, request, link.now() + patience, leader));
  }
}

/// Copies this lane's units of a row. `mine` is where the lane's place lies, or 0.
__device__ void copy_row(const uint4* row, const row_shares<placed_units>& share, std::uint64_t mine) {
  uint4 values[placed_units];
  share.each_unit([&](std::uint32_t i, std::uint32_t unit) { values[i] = row[unit]; });
  TMAP_KEEP_ROLLED
  for (std::uint32_t left = __ballot_sync(~0u, mine != 0); left != 0; left &= left - 1) {
    auto* const to = reinterpret_cast<uint4*>(value_of_lane(mine, first_lane(left)));
    share.each_unit([&](std::uint32_t i, std::uint32_t unit) { to[unit] = values[i]; });
  }
}

/// Brings a warp's share of all units to all their places. Lane j finds place j of an entry.
template <class Await>
__device__ void place_rows(peer_link& link, const peer::fetch_request& request, const peer::worker& warp,
                           const Await& await_rows) {
  const peer::listed_rows<peer_link> listed(link, request);
  row_shares<placed_units> share(warp, listed.count(), request.call.row_bytes / unit_bytes);
  const auto entry = [&] { return share.has_more() ? listed.entry(share.row()) : peer::listed_entry{}; };
  const auto place_of_lane = [&]() -> std::uint64_t {
    if (!share.has_more() || lane_of_thread() >= request.places) return 0;
    const std::uint64_t target = listed.target(share.row(), lane_of_thread());
    return target == 0 ? 0 : link.address(link.rank(), target);
  };
  peer::listed_entry each = entry();
  std::uint64_t place = place_of_lane();
  if (!await_rows()) return;
  TMAP_KEEP_ROLLED
  for (; share.has_more(); share.go_on(), each = entry(), place = place_of_lane()) {
    const peer::row_place from = listed.find(each);
    if (from.offset == 0) continue;
    copy_row(reinterpret_cast<const uint4*>(link.address(from.rank, from.offset)), share, place);
  }
}

__global__ void __launch_bounds__(gather_threads)
    place_rows_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ peer::fetch_request given,
                      std::uint64_t patience) {
  gather_by_block(window, given, patience, [&](peer_link& link, const peer::worker& warp, const auto& await_rows) {
    place_rows(link, given, warp, await_rows);
  });
}

}  // namespace

cudaError_t load_place_rows() {
  return load(place_rows_kernel);
}

cudaError_t launch_place_rows(const peer_memory_ref& window, const peer::fetch_request& request, std::uint64_t patience,
                              cudaStream_t stream) {
  return launch_behind(place_rows_kernel, {request.call.blocks, gather_threads}, stream, window, request, patience);
}

}  // namespace tmap::kernels
