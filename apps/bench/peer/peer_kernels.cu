// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/peer/peer_kernels.hpp"

#include <tmap/device/peer.cuh>

namespace tmap::apps::bench {
namespace {

using namespace tmap::device;

// One thread of each warp is a worker with stages of its own, so that one that waits for its stores
// before a signal does not hold up the others.
constexpr std::uint32_t workers = 4;
constexpr std::uint32_t stages = 3;
constexpr std::uint32_t ahead = 2;
constexpr std::uint32_t staging_bytes = workers * stages * piece_bytes;
constexpr std::uint32_t pieces_per_chunk = chunk_bytes / piece_bytes;
constexpr std::uint32_t raise_lag = 4;  // pieces between the last one of a chunk and its signal
constexpr std::uint32_t most_piece = 8192;

/// The pieces of one worker: every n-th chunk, and all pieces of a chunk one after the other.
struct share {
  __device__ share(std::uint64_t bytes, std::uint32_t worker, std::uint32_t all) : first{worker}, step{all} {
    const std::uint64_t chunks = bytes / chunk_bytes;
    count = worker < chunks ? (chunks - worker + all - 1) / all * pieces_per_chunk : 0;
  }
  __device__ std::uint64_t chunk(std::uint64_t n) const { return first + n / pieces_per_chunk * step; }
  __device__ std::uint64_t offset(std::uint64_t n) const {
    return chunk(n) * chunk_bytes + n % pieces_per_chunk * piece_bytes;
  }

  std::uint64_t first, step, count;
};

template <movement Kind>
__device__ void store(const peer_memory_ref& window, const move_request& request, std::uint64_t at,
                      const unsigned char* shared) {
  const std::uint32_t owner = Kind == movement::get ? window.rank : request.peer;
  if constexpr (Kind == movement::add_f32) {
    add_bytes(window, owner, request.to + at, reinterpret_cast<const float*>(shared), piece_bytes);
  } else {
    put_bytes(window, owner, request.to + at, shared, piece_bytes);
  }
  commit_stores();
}

template <movement Kind>
__global__ void __launch_bounds__(workers * 32)
    move_pieces(const __grid_constant__ peer_memory_ref window, const __grid_constant__ move_request request) {
  extern __shared__ __align__(128) unsigned char staging[];
  __shared__ tile_barrier full[workers][stages];
  const std::uint32_t worker = threadIdx.x / 32;
  if (threadIdx.x % 32 != 0) return;
  tile_barrier* const barriers = full[worker];
  unsigned char* const mine = staging + worker * stages * piece_bytes;
  for (std::uint32_t i = 0; i < stages; ++i) barriers[i].init(1);
  fence_barrier_init();
  const share pieces{request.bytes, blockIdx.x * workers + worker, gridDim.x * workers};
  const std::uint32_t source = Kind == movement::get ? request.peer : window.rank;
  const auto load = [&](std::uint64_t n) {
    const auto stage = static_cast<std::uint32_t>(n % stages);
    barriers[stage].arrive_expect(piece_bytes);
    get_bytes(mine + stage * piece_bytes, window, source, request.from + pieces.offset(n), piece_bytes,
              barriers[stage]);
  };
  for (std::uint64_t n = 0; n < ahead && n < pieces.count; ++n) load(n);
  for (std::uint64_t n = 0; n < pieces.count; ++n) {
    const auto stage = static_cast<std::uint32_t>(n % stages);
    barriers[stage].wait(n / stages % 2);
    store<Kind>(window, request, pieces.offset(n), mine + stage * piece_bytes);
    if (n + ahead < pieces.count) {
      wait_stores_read<stages - ahead>();
      load(n + ahead);
    }
    // The stores of the next chunk go on while those of a chunk complete.
    if (request.raises && n >= pieces_per_chunk && n % pieces_per_chunk == raise_lag - 1) {
      quiet<raise_lag + 1>();
      raise_released(window, request.peer, request.signals + 4 * pieces.chunk(n - raise_lag));
    }
  }
  if (!request.raises || pieces.count == 0) return wait_stores_written();
  quiet();
  raise_released(window, request.peer, request.signals + 4 * pieces.chunk(pieces.count - 1));
}

/// Sends a piece and its signal to the peer.
__device__ void send(const peer_memory_ref& window, const turns_request& request, const unsigned char* shared) {
  if (request.bytes != 0) {
    put_bytes(window, request.peer, request.to, shared, request.bytes);
    quiet();
    raise_released(window, request.peer, request.signal);
  } else {
    raise(window, request.peer, request.signal);
  }
}

__device__ void write_result(const peer_memory_ref& window, const turns_request& request, std::uint64_t begin,
                             double parts) {
  auto* const to = reinterpret_cast<turns_result*>(window.address(window.rank, request.result));
  to->nanoseconds = static_cast<double>(clock_now() - begin) / parts;
  to->is_done = 1;
}

__global__ void take_turns(const __grid_constant__ peer_memory_ref window,
                           const __grid_constant__ turns_request request) {
  __shared__ __align__(128) unsigned char piece[most_piece];
  const std::uint64_t deadline = clock_now() + request.patience;
  std::uint64_t begin = 0;
  for (std::uint32_t turn = 0; turn < 2 * request.turns; ++turn) {
    if (turn == request.turns) begin = clock_now();
    if (window.rank == 0) send(window, request, piece);
    if (!wait_until(window, request.signal, turn + 1, deadline)) return;
    if (window.rank != 0) send(window, request, piece);
  }
  write_result(window, request, begin, 2.0 * request.turns);
}

__global__ void meet(const __grid_constant__ peer_memory_ref window, const __grid_constant__ turns_request request) {
  const std::uint64_t deadline = clock_now() + request.patience;
  std::uint64_t begin = 0;
  for (std::uint32_t turn = 0; turn < 2 * request.turns; ++turn) {
    if (turn == request.turns) begin = clock_now();
    if (barrier(window, deadline).status != peer_status::ok) return;
  }
  write_result(window, request, begin, request.turns);
}

__global__ void wait_for_host(std::uint64_t nanoseconds) {
  const std::uint64_t end = clock_now() + nanoseconds;
  while (clock_now() < end) __nanosleep(1000);
}

template <movement Kind>
cudaError_t allow_staging() {
  return cudaFuncSetAttribute(move_pieces<Kind>, cudaFuncAttributeMaxDynamicSharedMemorySize, staging_bytes);
}

template <class Kernel>
cudaError_t load_kernel(Kernel* kernel) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, kernel);
}

}  // namespace

cudaError_t prepare_kernels() {
  for (const cudaError_t code :
       {allow_staging<movement::put>(), allow_staging<movement::get>(), allow_staging<movement::add_f32>(),
        load_kernel(take_turns), load_kernel(meet), load_kernel(wait_for_host)}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

cudaError_t launch_move(const peer_memory_ref& window, const move_request& request, cudaStream_t stream) {
  const dim3 grid{request.blocks};
  switch (request.kind) {
    case movement::put:
      move_pieces<movement::put><<<grid, workers * 32, staging_bytes, stream>>>(window, request);
      break;
    case movement::get:
      move_pieces<movement::get><<<grid, workers * 32, staging_bytes, stream>>>(window, request);
      break;
    case movement::add_f32:
      move_pieces<movement::add_f32><<<grid, workers * 32, staging_bytes, stream>>>(window, request);
  }
  return cudaGetLastError();
}

cudaError_t launch_turns(const peer_memory_ref& window, const turns_request& request, cudaStream_t stream) {
  take_turns<<<1, 1, 0, stream>>>(window, request);
  return cudaGetLastError();
}

cudaError_t launch_barriers(const peer_memory_ref& window, const turns_request& request, cudaStream_t stream) {
  meet<<<1, 1, 0, stream>>>(window, request);
  return cudaGetLastError();
}

cudaError_t launch_delay(std::uint64_t microseconds, cudaStream_t stream) {
  wait_for_host<<<1, 1, 0, stream>>>(microseconds * 1000);
  return cudaGetLastError();
}

}  // namespace tmap::apps::bench
