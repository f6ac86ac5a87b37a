// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace tmap::driver {

/// Whether a call failed as the calling thread has no context, or one that was destroyed.
bool says_no_context(CUresult code);

/// The number of a context, null: of the current one. No two contexts of a process ever have the
/// same.
cudaError_t context_id(CUcontext context, std::uint64_t* id);

/// The same of the current context; 0 when the calling thread has none, or one that was destroyed.
cudaError_t current_context(std::uint64_t* id);

}  // namespace tmap::driver
