// SPDX-License-Identifier: Apache-2.0
#include "lib/driver/map_driver.hpp"
#include "lib/pool/pool_calls.hpp"

namespace tmap::pool {
namespace {

/// Clears on a separate stream, because the legacy stream may be forbidden during a capture, and
/// non-blocking streams do not wait for it.
cudaError_t clear(void* data, std::size_t bytes) {
  cudaStream_t stream{};
  cudaError_t code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (code != cudaSuccess) return code;
  code = cudaMemsetAsync(data, 0, bytes, stream);
  if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
  const cudaError_t closed = cudaStreamDestroy(stream);
  return code == cudaSuccess ? closed : code;
}

cudaError_t allocate(void** data, std::size_t bytes) {
  void* memory{};
  cudaError_t code = cudaMalloc(&memory, bytes);
  if (code != cudaSuccess) return code;
  code = clear(memory, bytes);
  if (code == cudaSuccess) {
    *data = memory;
  } else {
    cudaFree(memory);
  }
  return code;
}

cudaError_t create_event(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDisableTiming);
}

/// Calls the driver, because the runtime treats "not ready" as an error, which would replace the
/// caller's last one. Both use the same numbers for the errors that both have.
cudaError_t query_event(cudaEvent_t event) {
  const result<driver::event_query_function> function = driver::process_driver().functions().event_query();
  return function ? static_cast<cudaError_t>((*function)(event)) : cudaErrorUnknown;
}

cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event) {
  return cudaStreamWaitEvent(stream, event, 0);
}

cudaError_t captured_graph(cudaStream_t stream, cudaGraph_t* graph) {
  cudaStreamCaptureStatus status{};
  cudaGraph_t found{};
  const cudaError_t code = cudaStreamGetCaptureInfo(stream, &status, nullptr, &found, nullptr, nullptr, nullptr);
  *graph = status == cudaStreamCaptureStatusActive ? found : nullptr;
  return code;
}

cudaError_t capture_id(cudaStream_t stream, unsigned long long* id) {
  cudaStreamCaptureStatus status{};
  unsigned long long found{};
  const cudaError_t code = cudaStreamGetCaptureInfo(stream, &status, &found, nullptr, nullptr, nullptr, nullptr);
  if (code != cudaSuccess) return code;
  if (status == cudaStreamCaptureStatusInvalidated) return cudaErrorStreamCaptureInvalidated;
  *id = status == cudaStreamCaptureStatusActive ? found : 0;
  return cudaSuccess;
}

cudaError_t retain_in_graph(cudaGraph_t graph, void* object, void (*drop)(void* object), cudaUserObject_t* held) {
  const cudaError_t made = cudaUserObjectCreate(held, object, drop, 1, cudaUserObjectNoDestructorSync);
  if (made != cudaSuccess) {
    *held = nullptr;
    return made;
  }
  const cudaError_t code = cudaGraphRetainUserObject(graph, *held, 1, cudaGraphUserObjectMove);
  if (code != cudaSuccess) static_cast<void>(cudaUserObjectRelease(*held, 1));
  return code;
}

cudaError_t graph_nodes(cudaGraph_t graph, std::size_t* count) {
  return cudaGraphGetNodes(graph, nullptr, count);
}

cudaError_t release_from_graph(cudaGraph_t graph, cudaUserObject_t held) {
  return cudaGraphReleaseUserObject(graph, held, 1);
}

}  // namespace

const pool_calls& real_pool_calls() {
  static constexpr pool_calls calls{allocate,
                                    cudaFree,
                                    create_event,
                                    cudaEventDestroy,
                                    cudaEventRecord,
                                    query_event,
                                    wait_event,
                                    cudaStreamGetId,
                                    captured_graph,
                                    retain_in_graph,
                                    cudaThreadExchangeStreamCaptureMode,
                                    capture_id,
                                    graph_nodes,
                                    release_from_graph};
  return calls;
}

}  // namespace tmap::pool
