// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// Replaces the CUDA runtime by the linker's --wrap. A program with wrapped_cuda.cpp calls it for
// every call of CUDA, including kernel launches. It does nothing and reports success.

namespace tmap::testing {

/// Numbers the devices. tmap queries each device only once.
enum class wrapped_gpu : int { h200, b200, rtx_6000, a100 };

/// Sets the current device from now on. The first one is an H200.
void use_gpu(wrapped_gpu gpu);

/// Makes the n-th call from now on fail (1 is the next, 0 is none), and with `all_after` each one
/// after it.
void fail_cuda_call(std::uint64_t n, bool all_after);

/// Returns the number of calls since `fail_cuda_call`.
std::uint64_t cuda_calls_made();

/// Returns the first call that failed since then. For a function of the driver it returns its name,
/// even if the function could not be found.
const std::string& failed_cuda_call();

}  // namespace tmap::testing
