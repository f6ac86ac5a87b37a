// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tmap::kernels {

/// Whether this build has kernels. A build without nvcc has none: kernels/left_out.cpp takes their
/// place, and every launch returns `cudaErrorNoKernelImageForDevice`.
bool has_kernels();

}  // namespace tmap::kernels
