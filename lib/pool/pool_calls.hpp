// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tmap::pool {

/// The CUDA calls of this folder, as pointers, so that tests can simulate any order of completion
/// and any failure.
struct pool_calls {
  cudaError_t (*allocate)(void** data, std::size_t bytes);  ///< zeroed device memory; may wait for the device
  cudaError_t (*free)(void* data);                          ///< waits for the device
  cudaError_t (*create_event)(cudaEvent_t* event);          ///< without timing
  cudaError_t (*destroy_event)(cudaEvent_t event);
  cudaError_t (*record_event)(cudaEvent_t event, cudaStream_t stream);
  cudaError_t (*query_event)(cudaEvent_t event);
  cudaError_t (*wait_event)(cudaStream_t stream, cudaEvent_t event);
  /// Not for a stream that is being captured: the query would break the capture (CUDA 13.0).
  cudaError_t (*stream_id)(cudaStream_t stream, unsigned long long* id);
  /// `graph` is the graph being captured, null when the stream is not captured.
  cudaError_t (*captured_graph)(cudaStream_t stream, cudaGraph_t* graph);
  /// Calls `drop(object)` once, when `graph` and all its executables are gone, on a thread where
  /// CUDA may not be called. `held` names the object until then. Where it fails `drop` is called
  /// only if it has set `held`. Needs no host memory of the program.
  cudaError_t (*retain_in_graph)(cudaGraph_t graph, void* object, void (*drop)(void* object), cudaUserObject_t* held);
  cudaError_t (*exchange_capture_mode)(cudaStreamCaptureMode* mode);
  /// Gets the id of the capture that the stream is in, unique in the process; 0 for none. Returns
  /// `cudaErrorStreamCaptureImplicit` for the legacy stream while another stream's capture forbids
  /// its use, and `cudaErrorStreamCaptureInvalidated` for a capture that broke and has not ended.
  cudaError_t (*capture_id)(cudaStream_t stream, unsigned long long* id);
  /// Counts the nodes of a graph, also while it is being captured, which only adds nodes.
  cudaError_t (*graph_nodes)(cudaGraph_t graph, std::size_t* count);
  /// Makes a graph that is being captured release an object: `drop` is called as if the graph were
  /// gone, perhaps at once.
  cudaError_t (*release_from_graph)(cudaGraph_t graph, cudaUserObject_t held);
};

const pool_calls& real_pool_calls();

}  // namespace tmap::pool
