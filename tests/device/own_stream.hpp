// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda/stream_ref>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace tmap::testing {

/// Owns a stream that does not wait for the legacy one.
class own_stream {
 public:
  own_stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  own_stream(const own_stream&) = delete;
  own_stream& operator=(const own_stream&) = delete;
  ~own_stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }
  cuda::stream_ref ref() const { return cuda::stream_ref{stream_}; }

 private:
  cudaStream_t stream_{};
};

}  // namespace tmap::testing
