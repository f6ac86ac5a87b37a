// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/tensor_batch.hpp>

#include <cuda_runtime_api.h>

namespace tmap::ragged {

/// The same batch with its arrays in device memory: host arrays are copied to `place` on the stream, which has room for
/// `workspace_layout::arrays`. Device arrays stay where they are.
result<tensor_batch> upload_arrays(const tensor_batch& batch, void* place, cudaStream_t stream);

}  // namespace tmap::ragged
