// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch.hpp"

#include <cuda/atomic>

namespace tmap::kernels {
namespace {

using word = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device>;

constexpr std::uint32_t block_threads = 256;

__device__ std::uint64_t my_index() {
  return std::uint64_t{blockIdx.x} * block_threads + threadIdx.x;
}

// Kernels that break the rules read these words at the same time. A thread that sees the new
// generation must see that its map is not published yet.
__global__ void open_slots(slot_record* records, std::uint64_t count, std::uint32_t generation, hazard_log* log) {
  if (my_index() >= count) return;
  slot_record& record = records[my_index()];
  const std::uint32_t turn = record.edition & ~(edition_written | edition_published);
  record.log = log;
  word(record.edition).store(turn + edition_step, cuda::memory_order_relaxed);
  word(record.generation).store(generation, cuda::memory_order_release);
}

__global__ void publish_slots(slot_record* records, std::uint64_t count, std::uint32_t generation) {
  if (my_index() >= count) return;
  slot_record& record = records[my_index()];
  if (record.generation != generation) return;
  word(record.edition).fetch_or(edition_written | edition_published, cuda::memory_order_release);
}

template <class... Arguments>
cudaError_t launch(void (*kernel)(Arguments...), std::uint64_t count, cudaStream_t stream, Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<std::uint32_t>((count + block_threads - 1) / block_threads);
  config.blockDim = block_threads;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace

cudaError_t launch_open_slots(slot_record* records, std::uint64_t count, std::uint32_t generation, hazard_log* log,
                              cudaStream_t stream) {
  return launch(open_slots, count, stream, records, count, generation, log);
}

cudaError_t launch_publish_slots(slot_record* records, std::uint64_t count, std::uint32_t generation,
                                 cudaStream_t stream) {
  return launch(publish_slots, count, stream, records, count, generation);
}

}  // namespace tmap::kernels
