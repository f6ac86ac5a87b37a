// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "kernels/peer_launch.hpp"
#include "lib/peer/peer_calls.hpp"
#include "lib/peer/test_window.hpp"
#include "lib/support/process.hpp"

namespace tmap::peer {
namespace {

std::uint64_t milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

cudaError_t is_device_memory(bool* is, const void* data) {
  cudaPointerAttributes found{};
  const cudaError_t code = cudaPointerGetAttributes(&found, data);
  *is = code == cudaSuccess && found.type == cudaMemoryTypeDevice;
  return code;
}

}  // namespace

const peer_calls& real_peer_calls() {
  static constexpr peer_calls calls{
      .is_exiting = support::is_exiting,
      .process_id = support::process_id,
      .environment = [](const char* name) -> const char* { return std::getenv(name); },
      .milliseconds = milliseconds,
      .nap = [] { std::this_thread::sleep_for(std::chrono::microseconds{100}); },
      .open_library = [](const char* name, int mode) { return dlopen(name, mode); },
      .find_function = [](void* library, const char* name) { return dlsym(library, name); },
      .device_count = [](int* count) { return cudaGetDeviceCount(count); },
      .current_device = [](int* device) { return cudaGetDevice(device); },
      .set_device = [](int device) { return cudaSetDevice(device); },
      .can_access_peer = [](int* can, int device, int peer) { return cudaDeviceCanAccessPeer(can, device, peer); },
      .enable_peer_access = [](int peer) { return cudaDeviceEnablePeerAccess(peer, 0); },
      .allocate = [](void** data, std::size_t bytes) { return cudaMalloc(data, bytes); },
      .free = [](void* data) { return cudaFree(data); },
      .open_stream = [](cudaStream_t* s) { return cudaStreamCreateWithFlags(s, cudaStreamNonBlocking); },
      .close_stream = [](cudaStream_t stream) { return cudaStreamDestroy(stream); },
      .clear = [](void* data, std::size_t bytes, cudaStream_t s) { return cudaMemsetAsync(data, 0, bytes, s); },
      .copy = [](void* to, const void* from, std::size_t bytes,
                 cudaStream_t s) { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s); },
      .query = [](cudaStream_t stream) { return cudaStreamQuery(stream); },
      .wait = [](cudaStream_t stream) { return cudaStreamSynchronize(stream); },
      .is_device_memory = is_device_memory,
      .ask_window_version = kernels::ask_window_version,
      .ask_window = kernels::launch_ask_window,
      .pack_parcels = kernels::launch_pack_parcels,
      .deliver_parcels = kernels::launch_deliver_parcels,
      .exchange = kernels::launch_exchange,
      .test_window = test_window,
  };
  return calls;
}

}  // namespace tmap::peer
