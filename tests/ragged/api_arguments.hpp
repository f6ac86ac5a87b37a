// SPDX-License-Identifier: Apache-2.0
#pragma once

// Good arguments of ragged operations, to be spoilt one by one. Their addresses are checked, never read.

#include <tmap/ragged.hpp>
#include <tmap/ragged_host.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "support/refusal.hpp"

namespace tmap::ragged::testing {

using tmap::testing::expect_refused;

inline const cuda::stream_ref no_stream{cudaStream_t{}};

template <class T>
const T* somewhere(std::uint64_t offset = 0) {
  return reinterpret_cast<const T*>(0x10000 + offset);
}

/// Both engines refuse the argument of this name, and say the same of it.
inline void expect_both_refuse(const result<void>& on_gpu, const result<void>& on_host, const std::string& name,
                               const std::string& what = {}) {
  expect_refused(on_gpu, name, what + ", on the GPU");
  expect_refused(on_host, name, what + ", on the host");
  if (!on_gpu && !on_host) {
    EXPECT_EQ(to_string(on_gpu.error()), to_string(on_host.error())) << what;
  }
}

inline tensor_batch columns_batch(std::uint32_t rank = 2, std::uint32_t element_bytes = 4) {
  patch_columns columns{};
  columns.global_address = somewhere<std::uint64_t>();
  for (std::uint32_t axis = 0; axis < rank; ++axis) columns.global_dim[axis] = somewhere<std::uint64_t>();
  tensor_batch batch;
  batch.tensors = columns;
  batch.count = 10;
  batch.element_bytes = element_bytes;
  batch.rank = rank;
  return batch;
}

inline workspace enough(std::uint32_t rank = 2) {
  return {reinterpret_cast<void*>(0x10000), workspace_bytes(10, rank).value()};
}

inline dense_batch some_dense() {
  dense_batch dense;
  dense.address = 0x20000;
  dense.dim[0] = 8;
  dense.dim[1] = 4;
  return dense;
}

inline packed_buffer some_packed() {
  packed_buffer packed;
  packed.memory = reinterpret_cast<void*>(0x20000);
  packed.bytes = 4096;
  return packed;
}

}  // namespace tmap::ragged::testing
