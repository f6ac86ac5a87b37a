// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/peer_link.cuh>
#include <tmap/moe.hpp>

#include <algorithm>
#include <cstdint>

#include "kernels/load_kernel.hpp"
#include "kernels/moe/route_place.cuh"
#include "kernels/peer/plain_launch.hpp"
#include "kernels/peer/protocol_record_fetch.hpp"
#include "kernels/peer/sort_ranks.cuh"
#include "kernels/peer_launch.hpp"

namespace tmap::kernels {
namespace {

/// Holds what the kernel works on.
struct few_tokens_work {
  peer::preparation all;
  sort_work by_expert;
};

using rank_sort = peer::rank_sort<sort_warps>;

/// Returns this thread among those of its block.
__device__ peer::word_worker thread_of_block() {
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  return {{warp, sort_warps}, {threadIdx.x % device::warp_lanes, device::warp_lanes}};
}

/// Sorts choices, by the threads of a block. Each block counts the choices of all records by
/// expert.
class sorting_block {
 public:
  /// `memory` is the dynamic one of the block.
  __device__ sorting_block(const device::peer_link& link, const few_tokens_work& work, rank_sort& ranks,
                           unsigned char* memory)
      : link_(link),
        work_(work),
        ranks_(ranks),
        order_(reinterpret_cast<peer::departing_record*>(memory)),
        choices_(reinterpret_cast<std::int32_t*>(memory + layout(work).choices())),
        counts_(memory + layout(work).counts(), work.by_expert.experts) {}

  template <class RankOf>
  __device__ void by_rank(const RankOf& rank_of) const {
    ranks_.run(link_, work_.all, blockIdx.x, order_, rank_of);
  }
  __device__ bool are_pulled() const { return ranks_.are_pulled(); }
  __device__ std::uint32_t departures(std::uint32_t rank) const { return ranks_.departures(rank); }
  __device__ peer::record_share departing() const { return ranks_.own(); }
  __device__ peer::departing_record record(std::uint32_t i) const { return order_[i - ranks_.own().begin]; }

  __device__ void clear(const peer::worker& mine) const {
    share(mine, work_.by_expert.experts, [&](std::uint64_t expert) { all(expert) = before(expert) = 0; });
  }
  __device__ void set_expert(std::uint32_t choice, std::uint32_t expert, bool is_before) const {
    choices_[choice] = static_cast<std::int32_t>(expert);
    if (expert >= work_.by_expert.experts) return;
    atomicAdd(&all(expert), 1u);
    if (is_before) atomicAdd(&before(expert), 1u);
  }
  __device__ bool by_expert(std::uint32_t, const peer::record_share& own) const {
    const sort_work& work = work_.by_expert;
    const std::uint32_t expert = threadIdx.x;
    const expert_total total = expert < work.experts ? expert_total{all(expert), before(expert), 0} : expert_total{};
    place_experts(work, counts_, {blockIdx.x, gridDim.x}, total);
    const std::uint32_t k = work_.all.at.k;
    if (threadIdx.x / device::warp_lanes == 1) place_choices(work, counts_, choices_, own.begin * k, own.end * k);
    return total.all != 0 && counts_.gap_begins[expert] > work.rows;
  }

 private:
  static __device__ peer::few_tokens_layout layout(const few_tokens_work& work) { return {work.all.at, work.all.rows}; }
  // Before experts have rows, the words of their gaps count them.
  __device__ std::uint32_t& all(std::uint64_t expert) const { return counts_.gap_begins[expert]; }
  __device__ std::uint32_t& before(std::uint64_t expert) const { return counts_.gap_ends[expert]; }

  const device::peer_link& link_;
  const few_tokens_work& work_;
  rank_sort& ranks_;
  peer::departing_record* order_;  ///< until the records are sent
  std::int32_t* choices_;          ///< experts, then rows
  sort_memory counts_;
};

/// Keeps a rank whose records did not come, too.
struct preparing_block : sorting_block {
  std::uint32_t& shared_late;

  __device__ void set_late(std::uint32_t rank) const { shared_late = rank; }
  __device__ std::uint32_t late() const { return shared_late; }
};

/// Prepares the dispatch, in the first block.
__device__ void prepare_rows(device::peer_link& link, const few_tokens_work& work, rank_sort& ranks,
                             unsigned char* shared, std::uint64_t deadline) {
  __shared__ std::uint32_t late;
  preparing_block block{{link, work, ranks, shared}, late};
  peer::prepare(link, work.all, thread_of_block(), block, deadline);
}

/// Sends and takes records, and fetches their rows, in another block.
__device__ void fetch_rows(const peer_memory_ref& window, const few_tokens_work& work, rank_sort& ranks,
                           unsigned char* shared, peer::packet* taken, std::uint64_t patience) {
  __shared__ device::tile_barrier gets[peer::record_fetch_sets];
  __shared__ peer::fetch_piece pieces[peer::most_fetch_stages];
  if (threadIdx.x == 0) {
    for (device::tile_barrier& each : gets) each.init(1);
    device::fence_barrier_init();
  }
  cudaGridDependencySynchronize();
  peer::fetch_request request = work.all.rows;
  request.call.block = blockIdx.x;
  device::peer_link link(window, shared, gets, taken);
  sorting_block block(link, work, ranks, shared);
  peer::take_and_fetch(link, work.all, request, thread_of_block(), pieces, block, link.now() + patience);
}

/// Runs in one block that prepares, and in those that send and take records, and fetch rows. They
/// must all run at the same time.
__global__ void __launch_bounds__(sort_threads, 1)
    dispatch_few_kernel(const __grid_constant__ peer_memory_ref window, const __grid_constant__ few_tokens_work work,
                        std::uint64_t patience) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ peer::packet taken[peer::most_taken_packets];
  __shared__ rank_sort ranks;
  // The next kernel starts after this one. If it waited on multiprocessors that another rank of the
  // same GPU needs, that rank would not come.
  if (blockIdx.x == 0) {
    cudaGridDependencySynchronize();
    device::peer_link link(window, nullptr, nullptr, taken);
    prepare_rows(link, work, ranks, shared, link.now() + patience);
  } else {
    fetch_rows(window, work, ranks, shared, taken, patience);
  }
}

}  // namespace

cudaError_t load_dispatch_few() {
  return load(dispatch_few_kernel);
}

// Blocks also have static memory. A multiprocessor has 227 KiB.
static_assert(sort_memory::placing_bytes(1) == peer::count_words * sizeof(std::uint32_t));
static_assert(sizeof(rank_sort) + sizeof(peer::packet) * peer::most_taken_packets + 2048 + peer::most_few_bytes <=
              (227 << 10));
static_assert(peer::most_prepared_choices * sizeof(peer::departing_record) <= peer::most_few_bytes);

cudaError_t launch_dispatch_few(const few_tokens_call& call) {
  const few_tokens_work work{call.work, sort_of(call.by_expert)};
  const peer::exchange_request& rows = call.work.rows.call;
  const std::uint32_t records =
      (call.work.records.sent_rows + rows.blocks - 2) / (rows.blocks - 1);  // that a block sends
  launch_size size{rows.blocks, sort_threads};
  size.shared_bytes = std::max(peer::few_tokens_layout(call.work.at, call.work.rows).end(),
                               records * static_cast<std::uint32_t>(sizeof(peer::departing_record)));
  size.most_shared_bytes = peer::most_few_bytes;
  return launch_behind(dispatch_few_kernel, size, call.by_expert.stream, call.window, work, call.patience);
}

}  // namespace tmap::kernels
