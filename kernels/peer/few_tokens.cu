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

/// Sorts by rank, by the threads of a block.
struct ranking_block {
  const device::peer_link& link;
  const few_tokens_work& work;
  rank_sort& ranks;
  unsigned char* memory;

  template <class RankOf>
  __device__ void by_rank(const RankOf& rank_of) {
    ranks.run(link, work.all, blockIdx.x, order(), rank_of);
  }
  __device__ bool are_pulled() const { return ranks.are_pulled(); }

 protected:
  __device__ peer::departing_record* order() const { return reinterpret_cast<peer::departing_record*>(memory); }
};

/// Sorts by expert, too.
struct preparing_block : ranking_block {
  struct shared_words {
    block_header header;
    std::uint32_t arrived;  ///< records
    bool are_taken;
    std::uint32_t late;  ///< a rank whose records did not come
  };
  shared_words& common;

  __device__ void set_arrived(std::uint32_t records, bool are_taken) const {
    common.arrived = records;
    common.are_taken = are_taken;
    common.late = peer::no_rank;
  }
  __device__ std::uint32_t arrived() const { return common.arrived; }
  __device__ bool are_taken() const { return common.are_taken; }
  __device__ void set_late(std::uint32_t rank) const { common.late = rank; }
  __device__ std::uint32_t late() const { return common.late; }
  __device__ void set_expert(std::uint32_t choice, std::uint32_t expert) const {
    experts()[choice] = static_cast<std::int32_t>(expert);
  }
  __device__ void by_expert() const {
    const sort_memory sorting(memory, work.by_expert.experts);
    route_in_block(work.by_expert, experts(), arrived() * work.all.at.k, sorting, common.header);
  }

 private:
  /// Returns the expert of each choice of the records that came, after the memory of the sort.
  __device__ std::int32_t* experts() const {
    return reinterpret_cast<std::int32_t*>(memory + sort_memory::bytes(work.by_expert.experts));
  }
};

/// Prepares the dispatch, in the first block.
__device__ void prepare_rows(device::peer_link& link, const few_tokens_work& work, rank_sort& ranks,
                             unsigned char* shared, std::uint64_t deadline) {
  __shared__ preparing_block::shared_words common;
  preparing_block block{{link, work, ranks, shared}, common};
  peer::prepare(link, work.all, thread_of_block(), block, deadline);
}

/// Keeps its share of the records, and what the first thread learns.
struct fetching_block : ranking_block {
  bool& ready;

  __device__ peer::record_share departing() const { return ranks.own(); }
  __device__ peer::departing_record record(std::uint32_t i) const { return order()[i - ranks.own().begin]; }
  __device__ void set_ready(bool is_ok) const { ready = is_ok; }
  __device__ bool is_ready() const { return ready; }
};

/// Sends and takes records, and fetches their rows, in another block.
__device__ void fetch_rows(const peer_memory_ref& window, const few_tokens_work& work, rank_sort& ranks,
                           unsigned char* shared, peer::packet* taken, std::uint64_t patience) {
  __shared__ device::tile_barrier gets[peer::record_fetch_sets];
  __shared__ peer::fetch_piece pieces[peer::most_fetch_stages];
  __shared__ bool ready;
  if (threadIdx.x == 0) {
    for (device::tile_barrier& each : gets) each.init(1);
    device::fence_barrier_init();
  }
  cudaGridDependencySynchronize();
  peer::fetch_request request = work.all.rows;
  request.call.block = blockIdx.x;
  device::peer_link link(window, shared, gets, taken);
  fetching_block block{{link, work, ranks, shared}, ready};
  peer::take_and_fetch(link, work.all, request, thread_of_block().thread(), pieces, block, link.now() + patience);
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
static_assert(sort_memory::bytes(moe::max_experts) + peer::most_prepared_choices * sizeof(std::int32_t) <=
              peer::most_few_bytes);
static_assert(sizeof(rank_sort) + sizeof(peer::packet) * peer::most_taken_packets + 2048 + peer::most_few_bytes <=
              (227 << 10));
static_assert(peer::most_prepared_choices * sizeof(peer::departing_record) <= peer::most_few_bytes);

cudaError_t launch_dispatch_few(const few_tokens_call& call) {
  const few_tokens_work work{call.work, sort_of(call.by_expert)};
  const peer::exchange_request& rows = call.work.rows.call;
  const std::uint32_t part = peer::record_part_bytes(call.work.rows.entries, call.work.at.k, call.work.at.scales);
  const std::uint32_t records =
      (call.work.records.sent_rows + rows.blocks - 2) / (rows.blocks - 1);  // that a block sends
  launch_size size{rows.blocks, sort_threads};
  size.shared_bytes =
      std::max({rows.stages * rows.staging_bytes + part,
                sort_memory::bytes(call.by_expert.problem.experts) +
                    call.work.at.arrivals * call.work.at.k * static_cast<std::uint32_t>(sizeof(std::int32_t)),
                records * static_cast<std::uint32_t>(sizeof(peer::departing_record))});
  size.most_shared_bytes = peer::most_few_bytes;
  return launch_behind(dispatch_few_kernel, size, call.by_expert.stream, call.window, work, call.patience);
}

}  // namespace tmap::kernels
