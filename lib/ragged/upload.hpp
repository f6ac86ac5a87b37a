// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/tensor_batch.hpp>

#include <cuda/std/span>

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/ragged_launch.hpp"

namespace tmap::ragged {

/// The calls of CUDA on arrays of the host, as pointers, so that tests can simulate captures and
/// kinds of memory.
struct memory_calls {
  cudaError_t (*capture_status)(cudaStream_t stream, cudaStreamCaptureStatus* status);
  cudaError_t (*attributes)(cudaPointerAttributes* attributes, const void* data);
  cudaError_t (*copy)(void* to, const void* from, std::size_t bytes, cudaStream_t stream);  ///< host to device
};

const memory_calls& real_memory_calls();

/// A side of an operation, and its name in the interface.
struct named_side {
  const kernels::side& side;
  const char* name;
};

/// Checks that the stream may copy the arrays of all sides. In a capture no array may lie in
/// pageable memory, which a graph would read at each replay, long after its owner freed it. Asks
/// CUDA only if a side has arrays of the host, and enqueues nothing. Fails with
/// `pageable_memory_in_capture`, or with the error of a call: `cudaErrorStreamCaptureImplicit` on
/// the legacy stream during a capture that forbids it, which the copy would have broken.
[[nodiscard]] result<void> check_host_arrays(cuda::std::span<const named_side> sides, cudaStream_t stream,
                                             const memory_calls& calls = real_memory_calls());

/// Returns the same batch with its arrays in device memory. It copies host arrays on the stream to
/// `place`, which has room for `workspace_layout::arrays`. Device arrays stay where they are.
[[nodiscard]] result<tensor_batch> upload_arrays(const tensor_batch& batch, void* place, cudaStream_t stream,
                                                 const memory_calls& calls = real_memory_calls());

}  // namespace tmap::ragged
