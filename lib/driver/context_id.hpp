// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace tmap::driver {

/// Whether a call failed because the calling thread has no context, or a destroyed one.
bool says_no_context(CUresult code);

/// Gets the id of a context; null means the current one. No two contexts of a process ever have the
/// same id.
cudaError_t context_id(CUcontext context, std::uint64_t* id);

/// Gets the id of the current context; 0 if the calling thread has none, or a destroyed one.
cudaError_t current_context(std::uint64_t* id);

}  // namespace tmap::driver
