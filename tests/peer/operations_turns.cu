// SPDX-License-Identifier: Apache-2.0
#include "peer/operations_kernels.hpp"
#include "peer/operations_support.cuh"

namespace tmap::testing::operations {
namespace {

// Barriers, by one thread.

constexpr std::uint32_t met_words = 32;  // that are put; as many are written by stores

struct meeting_memory {
  alignas(128) std::uint32_t sent[met_words];
  alignas(128) std::uint32_t got[2 * met_words];
  tile_barrier barrier;
};

__device__ void send_before_barrier(const peer_memory_ref& window, const turns_request& at, std::uint32_t turn,
                                    meeting_memory& shared) {
  for (std::uint32_t to = 0; to < window.ranks; ++to) {
    std::uint32_t* const there = words_at(window, to, at.place(window.rank));
    for (std::uint32_t i = 0; i < met_words; ++i) {
      there[i] = piece_word(turn, window.rank, to, 0, i);
      shared.sent[i] = piece_word(turn, window.rank, to, 0, met_words + i);
    }
    fence_shared_writes();
    put_bytes(window, to, at.place(window.rank) + 4 * met_words, shared.sent, 4 * met_words);
    flush();
  }
}

__device__ void read_after_barrier(const peer_memory_ref& window, const turns_request& at, std::uint32_t turn,
                                   meeting_memory& shared, loading& loads, tally& seen) {
  for (std::uint32_t from = 0; from < window.ranks; ++from) {
    const std::uint32_t* const words = words_at(window, window.rank, at.place(from));
    for (std::uint32_t i = 0; i < 2 * met_words; ++i) {
      seen.compare(words[i], piece_word(turn, from, window.rank, 0, i));
    }
    loads.get(shared.got, window, window.rank, at.place(from), 8 * met_words);
    for (std::uint32_t i = 0; i < 2 * met_words; ++i) {
      seen.compare(shared.got[i], piece_word(turn, from, window.rank, 0, i));
    }
  }
}

__global__ void meet(const __grid_constant__ peer_memory_ref window, const __grid_constant__ turns_request at,
                     operation_counts* counts) {
  __shared__ meeting_memory shared;
  loading loads(shared.barrier);
  const std::uint64_t end = clock_now() + at.patience;
  tally seen;
  for (std::uint32_t n = 0; n < at.turns && counts->ended == peer_status::ok; ++n) {
    send_before_barrier(window, at, counts->rounds, shared);
    counts->ended = barrier(window, end).status;
    if (counts->ended != peer_status::ok) break;
    read_after_barrier(window, at, counts->rounds, shared, loads, seen);
    counts->ended = barrier(window, end).status;  // nobody overwrites what another one reads
    ++counts->rounds;
  }
  seen.add_to(counts);
}

// Pieces that are passed. Each pair of ranks has a block that sends and a block that takes.

struct passing_memory {
  alignas(128) std::uint32_t piece[most_words];
  tile_barrier barrier;
};

/// Returns how the piece was sent, to thread 0.
__device__ peer_status pass(const peer_memory_ref& window, const turns_request& at, std::uint32_t to,
                            std::uint32_t turn, std::uint64_t end, passing_memory& shared) {
  for (std::uint32_t i = threadIdx.x; i < at.words; i += threads) {
    shared.piece[i] = piece_word(turn, window.rank, to, 0, i);
  }
  fence_shared_writes();
  __syncthreads();
  if (threadIdx.x != 0) return peer_status::ok;
  return put_and_raise(window, to, at.place(window.rank), shared.piece, 4 * at.words, end).status;
}

/// Takes a piece by loads and by bulk copies in turn.
__device__ peer_status take(const peer_memory_ref& window, const turns_request& at, std::uint32_t from,
                            std::uint32_t turn, std::uint64_t end, passing_memory& shared, loading& loads,
                            tally& seen) {
  const peer_status ended = threadIdx.x == 0 ? take_put(window, from, end).status : peer_status::ok;
  if (agree(ended != peer_status::ok)) return ended;
  const std::uint32_t* words = words_at(window, window.rank, at.place(from));
  if (turn % 2 == 1) {
    loads.get(shared.piece, window, window.rank, at.place(from), 4 * at.words);
    words = shared.piece;
  }
  for (std::uint32_t i = threadIdx.x; i < at.words; i += threads) {
    seen.compare(words[i], piece_word(turn, from, window.rank, 0, i));
  }
  __syncthreads();
  if (threadIdx.x == 0) return_put(window, from);
  return ended;
}

__global__ void pass_pieces(const __grid_constant__ peer_memory_ref window, const __grid_constant__ turns_request at,
                            operation_counts* all_counts) {
  __shared__ passing_memory shared;
  loading loads(shared.barrier);
  const std::uint32_t peer = blockIdx.x % window.ranks;
  operation_counts* const counts = all_counts + blockIdx.x;
  const std::uint32_t first = counts->rounds;
  const std::uint64_t end = clock_now() + at.patience;
  tally seen;
  std::uint32_t done = 0;
  peer_status ended = peer_status::ok;
  for (; done < at.turns; ++done) {
    ended = blockIdx.x < window.ranks ? pass(window, at, peer, first + done, end, shared)
                                      : take(window, at, peer, first + done, end, shared, loads, seen);
    if (agree(ended != peer_status::ok)) break;
  }
  seen.add_to(counts);
  if (threadIdx.x != 0) return;
  counts->rounds = first + done;
  counts->ended = ended;
}

// One call of one thread.

__global__ void call_once(const __grid_constant__ peer_memory_ref window, const __grid_constant__ lone_request at,
                          lone_result* result) {
  __shared__ __align__(128) std::uint32_t piece[lone_words];
  for (std::uint32_t& word : piece) word = at.value;
  fence_shared_writes();
  lone_result made{};
  const std::uint64_t begin = clock_now();
  const std::uint64_t end = at.patience == 0 ? 0 : begin + at.patience;
  std::uint32_t* const own = words_at(window, window.rank, at.offset);
  switch (at.call) {
    case lone_call::raise: raise(window, at.peer, at.offset, at.value); break;
    case lone_call::wait: made.has_come = wait_until(window, at.offset, at.value, end); break;
    case lone_call::raise_address: raise(words_at(window, at.peer, at.offset), at.value); break;
    case lone_call::raise_released_address:
      quiet();
      raise_released(words_at(window, at.peer, at.offset), at.value);
      break;
    case lone_call::wait_address: made.has_come = wait_until(own, at.value, end); break;
    case lone_call::barrier: made.verdict = barrier(window, end); break;
    case lone_call::put: made.verdict = put_and_raise(window, at.peer, at.offset, piece, sizeof(piece), end); break;
    case lone_call::take: made.verdict = take_put(window, at.peer, end); break;
    case lone_call::give_back: return_put(window, at.peer); break;
  }
  made.waited = clock_now() - begin;
  made.last = last_verdict(window);
  made.is_done = 1;
  *result = made;
}

}  // namespace

cudaError_t load_turns() {
  for (const cudaError_t code : {load_kernel(meet), load_kernel(pass_pieces), load_kernel(call_once)}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

cudaError_t launch_barriers(const peer_memory_ref& window, const turns_request& request, operation_counts* counts,
                            cudaStream_t stream) {
  meet<<<1, 1, 0, stream>>>(window, request, counts);
  return cudaGetLastError();
}

cudaError_t launch_passes(const peer_memory_ref& window, const turns_request& request, operation_counts* counts,
                          cudaStream_t stream) {
  pass_pieces<<<2 * window.ranks, threads, 0, stream>>>(window, request, counts);
  return cudaGetLastError();
}

cudaError_t launch_call(const peer_memory_ref& window, const lone_request& request, lone_result* result,
                        cudaStream_t stream) {
  call_once<<<1, 1, 0, stream>>>(window, request, result);
  return cudaGetLastError();
}

}  // namespace tmap::testing::operations
