// SPDX-License-Identifier: Apache-2.0
// The build compiles this file to PTX and machine code, but no program runs it. Each kernel is a
// row of the table of order in docs/peers.md. emitted_order_test.cpp reads the compiled code.
#include <tmap/device/peer.cuh>

namespace {

using namespace tmap;

constexpr std::uint32_t bytes = 128;
constexpr std::uint64_t signal = 0, data = 4096;

struct place {
  alignas(128) std::uint32_t tile[bytes / 4];
  device::tile_barrier barrier;
};

__device__ void get_and_wait(place& shared, const peer_memory_ref& window) {
  shared.barrier.arrive_expect(bytes);
  device::get_bytes(shared.tile, window, 1, data, bytes, shared.barrier);
  shared.barrier.wait(0);
}

__device__ const std::uint32_t& word_of(const peer_memory_ref& window, std::uint64_t offset) {
  return *reinterpret_cast<const std::uint32_t*>(window.address(window.rank, offset));
}

}  // namespace

#define WINDOW const __grid_constant__ peer_memory_ref window

extern "C" {

__global__ void write_then_put(WINDOW, std::uint32_t value) {
  __shared__ place shared;
  shared.tile[threadIdx.x] = value;
  device::fence_shared_writes();
  __syncthreads();
  device::put_bytes(window, 1, data, shared.tile, bytes);
  device::quiet();
}

__global__ void put_then_raise(WINDOW) {
  __shared__ place shared;
  device::put_bytes(window, 1, data, shared.tile, bytes);
  device::quiet();
  device::raise(window, 1, signal);
}

__global__ void add_then_raise(WINDOW) {
  __shared__ place shared;
  device::add_bytes(window, 1, data, shared.tile, bytes);
  device::quiet();
  device::raise(window, 1, signal);
}

__global__ void put_tile_then_raise(WINDOW, const __grid_constant__ tensor_map map) {
  __shared__ place shared;
  const std::int32_t at[] = {0};
  device::store_tile<1>(device::parameter_map(map), at, shared.tile);
  device::quiet();
  device::raise(window, 1, signal);
}

__global__ void put_then_flush(WINDOW) {
  __shared__ place shared;
  device::put_bytes(window, 1, data, shared.tile, bytes);
  device::flush();
  shared.tile[threadIdx.x] = 0;
}

__global__ void wait_then_load(WINDOW, std::uint32_t* seen, std::uint64_t deadline) {
  if (device::wait_until(window, signal, 1, deadline)) *seen = word_of(window, data);
}

__global__ void wait_then_sync(WINDOW, std::uint32_t* seen, std::uint64_t deadline) {
  __shared__ bool came;
  if (threadIdx.x == 0) came = device::wait_until(window, signal, 1, deadline);
  __syncthreads();
  if (came) seen[threadIdx.x] = word_of(window, data + 4 * threadIdx.x);
}

__global__ void wait_then_get(WINDOW, std::uint32_t* seen, std::uint64_t deadline) {
  __shared__ place shared;
  shared.barrier.init(1);
  device::fence_barrier_init();
  if (!device::wait_until(window, signal, 1, deadline)) return;
  device::fence_global_accesses();
  get_and_wait(shared, window);
  *seen = shared.tile[0];
}

__global__ void get_then_credit(WINDOW) {
  __shared__ place shared;
  shared.barrier.init(1);
  device::fence_barrier_init();
  get_and_wait(shared, window);
  device::raise(window, 1, signal);
}

__global__ void put_then_settle(WINDOW) {
  __shared__ place shared;
  const device::peer_link link(window, shared.tile);
  link.put(0, data, 0, bytes);
  link.settle();
}

__global__ void put_then_raise_released(WINDOW) {
  __shared__ place shared;
  device::put_bytes(window, 1, data, shared.tile, bytes);
  device::quiet();
  device::raise_released(window, 1, signal);
  device::raise_released(window, 2, signal);
}

// The last two pieces may still be on their way.
__global__ void put_then_raise_the_first(WINDOW) {
  __shared__ place shared;
  for (std::uint32_t i = 0; i < 3; ++i) {
    device::put_bytes(window, 1, data + i * bytes, shared.tile, bytes);
    device::commit_stores();
  }
  device::quiet<3>();
  device::raise_released(window, 1, signal);
  device::wait_stores_written();
}

__global__ void flush_then_raise_the_flushed(WINDOW, std::uint64_t address) {
  __shared__ place shared;
  const device::peer_link link(window, shared.tile);
  link.put(1, data, 0, bytes);
  link.flush();
  link.put(1, data + bytes, 0, bytes);
  link.quiet_flushed();
  link.raise_released_at(address, 1);
  link.settle();
}

__global__ void store_then_send(WINDOW, std::uint32_t value) {
  const device::peer_link link(window);
  link.store(1, data, value);
  link.release();
  link.send(1, data + 16, {{value, value, value}, 1});
  link.send(2, data + 16, {{value, value, value}, 1});
}

__global__ void await_packets_then_send(WINDOW, std::uint64_t deadline) {
  const device::peer_link link(window);
  device::peer_link::packet found[2];
  if (link.await_packets(data, 1, 2, 1, found, deadline)) link.send(1, data + 32, found[1]);
}

__global__ void take_then_load(WINDOW, std::uint32_t* seen, std::uint64_t deadline) {
  __shared__ device::peer_link::packet taken[2];
  const device::peer_link link(window, nullptr, nullptr, taken);
  if (link.take(data + 16, 2, 1, 0, deadline)) *seen = link.load(0, data) + link.taken(4);
}

__global__ void store_then_raise_here(WINDOW, std::uint32_t value) {
  const device::peer_link link(window);
  link.store(0, data, value);
  link.raise_here(signal, 1);
}

__global__ void store_then_count_here(WINDOW, std::uint32_t value, std::uint32_t* seen) {
  const device::peer_link link(window);
  link.store(0, data, value);
  if (link.count_here(signal) == 1) *seen = link.load(0, data + 4);
}

__global__ void store_then_raise_all(WINDOW, std::uint32_t value) {
  const device::peer_link link(window);
  link.store(1, data, value);
  link.release();
  link.raise_released(1, signal, 1);
  link.raise_released(2, signal, 1);
}

// A get through a link announces its bytes before the copy.
__global__ void get_by_link(WINDOW, std::uint32_t* seen) {
  __shared__ place shared;
  shared.barrier.init(1);
  device::fence_barrier_init();
  device::peer_link link(window, shared.tile, &shared.barrier);
  link.get(0, 1, data, bytes);
  link.wait_gets();
  *seen = shared.tile[0];
}

__global__ void group_barrier(WINDOW, std::uint32_t* seen, std::uint64_t deadline) {
  *seen = static_cast<std::uint32_t>(device::barrier(window, deadline).status);
}

// Seeded faults.
__global__ void no_quiet(WINDOW) {
  __shared__ place shared;
  device::put_bytes(window, 1, data, shared.tile, bytes);
  device::commit_stores();
  device::raise(window, 1, signal);
}

__global__ void flush_for_quiet(WINDOW) {
  __shared__ place shared;
  device::put_bytes(window, 1, data, shared.tile, bytes);
  device::flush();
  device::raise(window, 1, signal);
}

__global__ void relaxed_raise(WINDOW) {
  __shared__ place shared;
  device::put_bytes(window, 1, data, shared.tile, bytes);
  device::commit_stores();
  device::wait_stores_written();
  atomicAdd_system(reinterpret_cast<std::uint32_t*>(window.address(1, signal)), 1u);
}

__global__ void relaxed_wait(WINDOW, std::uint32_t* seen) {
  while (device::ptx::ld_relaxed_sys(&word_of(window, signal)) == 0) {
  }
  *seen = word_of(window, data);
}

__global__ void no_proxy_fence(WINDOW, std::uint32_t* seen, std::uint64_t deadline) {
  __shared__ place shared;
  shared.barrier.init(1);
  device::fence_barrier_init();
  if (!device::wait_until(window, signal, 1, deadline)) return;
  get_and_wait(shared, window);
  *seen = shared.tile[0];
}

}  // extern "C"
