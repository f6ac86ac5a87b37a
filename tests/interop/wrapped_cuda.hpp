// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// A CUDA runtime in the place of the real one, by the linker's --wrap: a program with
// wrapped_cuda.cpp calls it wherever it calls CUDA, kernels' launches included. It does nothing and
// says that all went well.

namespace tmap::testing {

/// Devices by number, as tmap asks each about itself only once.
enum class wrapped_gpu : int { h200, b200, rtx_6000, a100 };

/// The current device from now on; an H200 at first.
void use_gpu(wrapped_gpu gpu);

/// From now on the n-th call (1 is the next, 0 is none), and with `all_after` each one after it,
/// fails.
void fail_cuda_call(std::uint64_t n, bool all_after);

/// Calls since `fail_cuda_call`.
std::uint64_t cuda_calls_made();

/// The first call that failed since then; of a function of the driver, its name, also where it
/// could not be found.
const std::string& failed_cuda_call();

}  // namespace tmap::testing
