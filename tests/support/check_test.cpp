// SPDX-License-Identifier: Apache-2.0
#include "lib/support/check.hpp"

#include <gtest/gtest.h>

namespace tmap::testing {
namespace {

result<int> after_runtime(cudaError_t code) {
  TMAP_TRY_CUDA(code);
  return 7;
}

result<int> after_driver(CUresult code) {
  TMAP_TRY_DRIVER(code);
  return 7;
}

TEST(check_macros, let_success_through) {
  EXPECT_EQ(after_runtime(cudaSuccess).value(), 7);
  EXPECT_EQ(after_driver(CUDA_SUCCESS).value(), 7);
}

TEST(check_macros, keep_the_code) {
  EXPECT_EQ(after_runtime(cudaErrorInvalidValue).error().cuda_code, cudaErrorInvalidValue);
  EXPECT_EQ(after_driver(CUDA_ERROR_INVALID_VALUE).error().cuda_code, CUDA_ERROR_INVALID_VALUE);
}

TEST(check_macros, evaluate_the_call_once) {
  int calls = 0;
  const auto run = [&]() -> result<void> {
    TMAP_TRY_CUDA((++calls, cudaErrorUnknown));
    return {};
  };
  EXPECT_FALSE(run());
  EXPECT_EQ(calls, 1);
}

TEST(check_macros, status_of_a_code) {
  const std::pair<int, status> expected[] = {
      {cudaErrorMemoryAllocation, status::out_of_memory},
      {cudaErrorNoDevice, status::no_device},
      {cudaErrorNoKernelImageForDevice, status::no_kernel_image},
      {cudaErrorInvalidDeviceFunction, status::no_kernel_image},
      {cudaErrorIllegalAddress, status::earlier_asynchronous_error},
      {cudaErrorIllegalInstruction, status::earlier_asynchronous_error},
      {cudaErrorLaunchFailure, status::earlier_asynchronous_error},
      {CUDA_ERROR_INVALID_CONTEXT, status::no_context},
      {CUDA_ERROR_NOT_INITIALIZED, status::no_context},
      {cudaErrorInvalidValue, status::cuda_failure},
  };
  for (const auto& [code, meaning] : expected) EXPECT_EQ(support::status_of(code), meaning) << code;
}

TEST(check_macros, a_failed_runtime_call_leaves_no_last_error) {
  int version = 0;
  ASSERT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  if (version == 0) {
    void* memory = nullptr;
    EXPECT_EQ(after_runtime(cudaMalloc(&memory, 16)).error().code, status::no_driver);
    return;  // Without a driver, the runtime returns an error for every query of the last error.
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  EXPECT_EQ(after_runtime(cudaSetDevice(-1)).error().code, status::cuda_failure);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_NE(cudaSetDevice(-1), cudaSuccess);
  const cudaError_t of_caller = cudaPeekAtLastError();
  EXPECT_EQ(after_runtime(cudaErrorMemoryAllocation).error().code, status::out_of_memory);
  EXPECT_EQ(cudaGetLastError(), of_caller) << "the caller's error stays";
}

}  // namespace
}  // namespace tmap::testing
