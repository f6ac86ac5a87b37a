// SPDX-License-Identifier: Apache-2.0
#include "peer/operations_kernels.hpp"

#include <tmap/device/reduce_copy.cuh>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "peer/operations_support.cuh"

namespace tmap::testing::operations {
namespace {

// Rounds of pieces. One block sends to all ranks and takes from all of them.

struct piece_memory {
  alignas(128) std::uint32_t sent[2][most_words];
  alignas(128) std::uint32_t got[most_words];
  tile_barrier barrier;
};

class piece_block {
 public:
  __device__ piece_block(const peer_memory_ref& window, const piece_request& at, piece_memory& shared,
                         std::uint32_t* out)
      : window_(window), at_(at), shared_(shared), out_(out), loads_(shared.barrier), end_(clock_now() + at.patience) {}

  /// Returns false if a rank did not come.
  __device__ bool run(std::uint32_t round, tally& seen) {
    if (!await_all(at_.credits, round)) return false;
    send_all(round);
    if (at_.way == piece_way::put_and_load) touch();
    if (!await_all(at_.signals, round + 1)) return false;
    if (threadIdx.x == 0 && at_.way != piece_way::put_and_load) fence_global_accesses();
    for (std::uint32_t from = 0; from < window_.ranks; ++from) receive(from, round, seen);
    return true;
  }

 private:
  __device__ bool await_all(std::uint64_t signals, std::uint32_t value) const {
    bool came = true;
    for (std::uint32_t rank = 0; threadIdx.x == 0 && came && rank < window_.ranks; ++rank) {
      came = wait_until(window_, signals + 4 * rank, value, end_);
    }
    return agree(came);
  }

  __device__ std::uint32_t receiver(std::uint32_t n) const {
    return (window_.rank + 1 + n / at_.pieces) % window_.ranks;
  }
  __device__ void send_all(std::uint32_t round) const {
    const bool puts = at_.way != piece_way::write_and_get;
    for (std::uint32_t n = 0; n < window_.ranks * at_.pieces; ++n) {
      const std::uint32_t to = receiver(n), piece = n % at_.pieces;
      std::uint32_t* const staged = shared_.sent[at_.order == piece_order::one_ahead ? n % 2 : 0];
      std::uint32_t* const words = puts ? staged : words_at(window_, window_.rank, at_.place(to, piece));
      for (std::uint32_t i = threadIdx.x; i < at_.words; i += threads) {
        words[i] = piece_word(round, window_.rank, to, piece, i);
      }
      fence_shared_writes();
      __syncthreads();
      if (threadIdx.x == 0 && puts) put(n, staged);
      __syncthreads();
    }
    if (threadIdx.x == 0) announce();
  }
  /// Lets `staged` be overwritten; if one put is ahead, that of the put before.
  __device__ void put(std::uint32_t n, const std::uint32_t* staged) const {
    put_bytes(window_, receiver(n), at_.place(window_.rank, n % at_.pieces), staged, 4 * at_.words);
    switch (at_.order) {
      case piece_order::quiet_each: return quiet();
      case piece_order::flush_each: return flush();
      case piece_order::one_ahead: break;
    }
    quiet<1>();
    if (n != 0 && n % at_.pieces == 0) raise_released(window_, receiver(n - 1), at_.signals + 4 * window_.rank);
  }
  __device__ void announce() const {
    const std::uint64_t signal = at_.signals + 4 * window_.rank;
    if (at_.order != piece_order::quiet_each) quiet();
    const bool is_rest = at_.order == piece_order::one_ahead && at_.way != piece_way::write_and_get;
    for (std::uint32_t i = is_rest ? window_.ranks - 1 : 0; i < window_.ranks; ++i) {
      const std::uint32_t to = receiver(i * at_.pieces);
      at_.order == piece_order::quiet_each ? raise(window_, to, signal) : raise_released(window_, to, signal);
    }
  }

  /// Reads the pieces before they are announced, so that old words are in L1.
  __device__ void touch() const {
    for (std::uint32_t n = 0; n < window_.ranks * at_.pieces; ++n) {
      const std::uint32_t* const words = words_at(window_, window_.rank, at_.place(0, n));
      for (std::uint32_t i = threadIdx.x; i < at_.words; i += threads) out_[n * at_.words + i] = words[i];
    }
  }

  __device__ const std::uint32_t* read(std::uint32_t from, std::uint32_t piece) {
    const bool is_there = at_.way == piece_way::write_and_get;
    const std::uint64_t offset = at_.place(is_there ? window_.rank : from, piece);
    if (at_.way == piece_way::put_and_load) return words_at(window_, window_.rank, offset);
    loads_.get(shared_.got, window_, is_there ? from : window_.rank, offset, 4 * at_.words);
    return shared_.got;
  }
  __device__ void receive(std::uint32_t from, std::uint32_t round, tally& seen) {
    for (std::uint32_t piece = 0; piece < at_.pieces; ++piece) {
      const std::uint32_t* const words = read(from, piece);
      for (std::uint32_t i = threadIdx.x; i < at_.words; i += threads) {
        const std::uint32_t word = words[i];
        out_[(from * at_.pieces + piece) * at_.words + i] = word;
        seen.compare(word, piece_word(round, from, window_.rank, piece, i));
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) raise(window_, from, at_.credits + 4 * window_.rank);
  }

  const peer_memory_ref& window_;
  const piece_request& at_;
  piece_memory& shared_;
  std::uint32_t* out_;
  loading loads_;
  std::uint64_t end_;
};

__global__ void exchange_pieces(const __grid_constant__ peer_memory_ref window,
                                const __grid_constant__ piece_request at, operation_counts* counts,
                                std::uint32_t* out) {
  __shared__ piece_memory shared;
  piece_block block(window, at, shared, out);
  const std::uint32_t first = counts->rounds;
  tally seen;
  std::uint32_t done = 0;
  while (done < at.rounds && block.run(first + done, seen)) ++done;
  seen.add_to(counts);
  __syncthreads();
  if (threadIdx.x != 0) return;
  counts->rounds = first + done;
  if (done < at.rounds) counts->ended = peer_status::timeout;
}

// Additions.

constexpr std::uint32_t most_added_bytes = 8192;

template <class T>
__global__ void add_everywhere(const __grid_constant__ peer_memory_ref window, const __grid_constant__ add_request at,
                               operation_counts* counts, T* out) {
  __shared__ __align__(128) unsigned char memory[most_added_bytes];
  T* const shared = reinterpret_cast<T*>(memory);
  for (std::uint32_t n = 0; n < at.times * window.ranks; ++n) {
    const std::uint32_t to = (window.rank + n) % window.ranks;
    for (std::uint32_t i = threadIdx.x; i < at.elements; i += threads) {
      shared[i] = static_cast<T>(addend(window.rank, to, i));
    }
    fence_shared_writes();
    __syncthreads();
    if (threadIdx.x == 0) {
      add_bytes(window, to, at.data, shared, at.elements * sizeof(T));
      flush();
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    quiet();
    for (std::uint32_t to = 0; to < window.ranks; ++to) raise(window, to, at.signal);
  }
  if (blockIdx.x != 0) return;
  const bool came =
      agree(threadIdx.x == 0 && wait_until(window, at.signal, window.ranks * at.blocks, clock_now() + at.patience));
  const T* const sums = reinterpret_cast<const T*>(window.address(window.rank, at.data));
  for (std::uint32_t i = threadIdx.x; came && i < at.elements; i += threads) out[i] = sums[i];
  if (threadIdx.x != 0) return;
  counts->rounds += came;
  if (!came) counts->ended = peer_status::timeout;
}

// Tiles. Each block has one tensor.

struct tile_memory {
  alignas(128) float tile[tile_elements];
  tile_barrier barrier;
};

__device__ void store_tensor(const tile_request& at, acquired_map map, std::uint32_t writer, tile_memory& shared) {
  for (std::uint32_t first = 0; first < at.stored_rows[blockIdx.x]; first += tile_rows) {
    for (std::uint32_t i = threadIdx.x; i < tile_elements; i += threads) {
      shared.tile[i] = tile_value(writer, blockIdx.x, first + i / tile_columns, i % tile_columns);
    }
    fence_shared_writes();
    __syncthreads();
    if (threadIdx.x == 0) {
      const std::int32_t to[] = {0, static_cast<std::int32_t>(first)};
      if (at.adds) reduce_tile<reduction::add, element_type::f32>(map, to, shared.tile);
      if (!at.adds) store_tile(map, to, shared.tile);
      flush();
    }
    __syncthreads();
  }
}

__device__ void load_tensor(const tile_request& at, acquired_map map, tile_memory& shared, float* out) {
  std::uint32_t parity = 0;
  for (std::uint32_t first = 0; first < at.loaded_rows[blockIdx.x]; first += tile_rows) {
    if (threadIdx.x == 0) {
      shared.barrier.arrive_expect(sizeof(shared.tile));
      load_tile(shared.tile, map, {0, static_cast<std::int32_t>(first)}, shared.barrier);
    }
    shared.barrier.wait(parity);
    parity ^= 1;
    for (std::uint32_t i = threadIdx.x; i < tile_elements; i += threads) {
      out[first * tile_columns + i] = shared.tile[i];
    }
    __syncthreads();
  }
}

__global__ void move_tiles(const __grid_constant__ peer_memory_ref window, const __grid_constant__ tile_request at,
                           operation_counts* counts, float* out) {
  __shared__ tile_memory shared;
  const loading ready(shared.barrier);
  const std::uint64_t signal = at.signals + 4 * blockIdx.x;
  const acquired_map stored = acquire(at.stored + blockIdx.x);
  const acquired_map loaded = acquire((at.loaded == nullptr ? at.stored : at.loaded) + blockIdx.x);
  store_tensor(at, stored, window.rank, shared);
  if (threadIdx.x == 0) {
    quiet();
    raise_released(window, (window.rank + window.ranks - 1) % window.ranks, signal);
  }
  const bool came = agree(threadIdx.x == 0 && wait_until(window, signal, 1, clock_now() + at.patience));
  if (threadIdx.x == 0) {
    fence_global_accesses();
    counts[blockIdx.x].rounds += came;
    if (!came) counts[blockIdx.x].ended = peer_status::timeout;
  }
  if (came && at.loaded != nullptr) load_tensor(at, loaded, shared, out + blockIdx.x * most_tiles * tile_elements);
}

}  // namespace

cudaError_t load_kernels() {
  for (const cudaError_t code :
       {load_kernel(exchange_pieces), load_kernel(add_everywhere<float>), load_kernel(add_everywhere<__half>),
        load_kernel(add_everywhere<__nv_bfloat16>), load_kernel(move_tiles)}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

cudaError_t launch_pieces(const peer_memory_ref& window, const piece_request& request, operation_counts* counts,
                          std::uint32_t* out, cudaStream_t stream) {
  exchange_pieces<<<1, threads, 0, stream>>>(window, request, counts, out);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_adds(const peer_memory_ref& window, const add_request& request, operation_counts* counts, T* out,
                        cudaStream_t stream) {
  add_everywhere<<<request.blocks, threads, 0, stream>>>(window, request, counts, out);
  return cudaGetLastError();
}
template cudaError_t launch_adds(const peer_memory_ref&, const add_request&, operation_counts*, float*, cudaStream_t);
template cudaError_t launch_adds(const peer_memory_ref&, const add_request&, operation_counts*, __half*, cudaStream_t);
template cudaError_t launch_adds(const peer_memory_ref&, const add_request&, operation_counts*, __nv_bfloat16*,
                                 cudaStream_t);

cudaError_t launch_tiles(const peer_memory_ref& window, const tile_request& request, operation_counts* counts,
                         float* out, cudaStream_t stream) {
  move_tiles<<<request.tensors, threads, 0, stream>>>(window, request, counts, out);
  return cudaGetLastError();
}

}  // namespace tmap::testing::operations
