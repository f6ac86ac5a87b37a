// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "lib/driver/runtime_calls.hpp"

// A CUDA runtime and driver that do what a test specifies. The process has one, like the real ones.
// Make a `fake_cuda` at the start of each test to begin with a healthy H200.

namespace tmap::testing {

/// States how one entry point is found.
struct fake_symbol {
  cudaError_t code{cudaSuccess};
  cudaDriverEntryPointQueryResult found{cudaDriverEntryPointSuccess};
  bool has_pointer{true};
  bool touches_outputs{true};
};

/// Holds the arguments of one driver call that tests check.
struct fake_call {
  std::string function;
  std::uint64_t address{};
  bool strides_present{};
  bool map_aligned_to_64{};
  im2col_spec given{};  ///< every number of the call; a tiled map has only its tensor, an im2col map has no box
  im2col_wide_mode wide_mode{};
};

struct fake_cuda {
  fake_cuda();
  ~fake_cuda();
  fake_cuda(const fake_cuda&) = delete;
  fake_cuda& operator=(const fake_cuda&) = delete;

  int version{13000};
  cudaError_t version_code{cudaSuccess};
  int devices{1};
  cudaError_t devices_code{cudaSuccess};
  cudaError_t current_device_code{cudaSuccess};
  cudaError_t set_device_code{cudaSuccess};
  int major{9};
  int minor{0};
  fake_symbol symbol;

  /// The results of the driver's calls, in order; success when none is left.
  std::deque<CUresult> answers;

  std::vector<fake_call> calls;
  std::vector<std::string> lookups;
  int set_device_calls{};
};

const driver::runtime_calls& fake_runtime();

/// Makes the runtime behave as it does without libcuda: version 0 with success. Other calls return
/// an error and leave their outputs unchanged.
void remove_driver(fake_cuda& cuda);

}  // namespace tmap::testing
