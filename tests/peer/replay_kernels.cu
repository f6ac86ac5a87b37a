// SPDX-License-Identifier: Apache-2.0
#include "peer/replay_kernels.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint32_t threads = 256;

__device__ std::uint32_t mix(std::uint64_t key) {
  key = (key ^ (key >> 33)) * 0xff51afd7ed558ccdULL;
  key = (key ^ (key >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return static_cast<std::uint32_t>(key >> 32);
}

/// Some of the counts are 0.
__device__ std::uint32_t rows_of(const replayed_exchange& at, unsigned long long call, std::uint32_t from,
                                 std::uint32_t to, std::uint32_t group) {
  const std::uint32_t drawn = mix(((call * 32 + from) * 32 + to) * 64 + group);
  return drawn % 8 == 0 ? 0 : drawn / 8 % (at.most_rows + 1);
}

__device__ std::uint32_t word_of(unsigned long long call, std::uint32_t from, std::uint32_t to, std::uint32_t group,
                                 std::uint32_t word) {
  return mix((((call * 32 + from) * 32 + to) * 64 + group) * (1ULL << 24) + word);
}

/// A block has the rows for one group of one rank. Returns how many rows stand before them.
template <class Count>
__device__ std::uint32_t rows_before(const Count& count) {
  std::uint32_t rows = 0;
  for (std::uint32_t i = 0; i < blockIdx.x; ++i) rows += count(i);
  return rows;
}

__global__ void draw_kernel(const __grid_constant__ peer_memory_ref window,
                            const __grid_constant__ replayed_exchange at, const replay_counts* counts) {
  const unsigned long long call = counts->calls;
  const std::uint32_t me = window.rank, to = blockIdx.x / at.groups, group = blockIdx.x % at.groups;
  const auto count = [&](std::uint32_t i) { return rows_of(at, call, me, i / at.groups, i % at.groups); };
  const std::uint32_t first = rows_before(count), rows = count(blockIdx.x);
  if (threadIdx.x == 0) reinterpret_cast<std::uint32_t*>(window.address(me, at.splits))[blockIdx.x] = rows;
  auto* const words = reinterpret_cast<std::uint32_t*>(window.address(me, at.rows)) + first * at.row_words;
  for (std::uint32_t i = threadIdx.x; i < rows * at.row_words; i += threads) {
    words[i] = word_of(call, me, to, group, i);
  }
}

__global__ void compare_kernel(const __grid_constant__ peer_memory_ref window,
                               const __grid_constant__ replayed_exchange at, replay_counts* counts) {
  const unsigned long long call = counts->calls;
  const std::uint32_t me = window.rank, from = blockIdx.x / at.groups, group = blockIdx.x % at.groups;
  const auto count = [&](std::uint32_t i) { return rows_of(at, call, i / at.groups, me, i % at.groups); };
  const std::uint32_t first = rows_before(count), rows = count(blockIdx.x);
  auto* const words = reinterpret_cast<std::uint32_t*>(window.address(me, at.out)) + first * at.row_words;
  std::uint32_t wrong = 0;
  for (std::uint32_t i = threadIdx.x; i < rows * at.row_words; i += threads) {
    wrong += words[i] != word_of(call, from, me, group, i);
    words[i] = ~words[i];  // no later call may pass by what this one left
  }
  if (wrong != 0) atomicAdd(&counts->wrong_words, wrong);
  if (threadIdx.x != 0) return;
  atomicAdd(&counts->bytes, 4ULL * rows * at.row_words);
  const std::uint32_t came = reinterpret_cast<const std::uint32_t*>(window.address(me, at.out_splits))[blockIdx.x];
  if (came != rows) atomicAdd(&counts->wrong_counts, 1);
}

__global__ void end_call_kernel(replay_counts* counts) {
  ++counts->calls;
}

}  // namespace

void launch_draw(const peer_memory_ref& window, const replayed_exchange& at, const replay_counts* counts,
                 cudaStream_t stream) {
  draw_kernel<<<window.ranks * at.groups, threads, 0, stream>>>(window, at, counts);
}

void launch_compare(const peer_memory_ref& window, const replayed_exchange& at, replay_counts* counts,
                    cudaStream_t stream) {
  compare_kernel<<<window.ranks * at.groups, threads, 0, stream>>>(window, at, counts);
  end_call_kernel<<<1, 1, 0, stream>>>(counts);
}

}  // namespace tmap::testing
