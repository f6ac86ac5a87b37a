// SPDX-License-Identifier: Apache-2.0
#pragma once

// Valid arguments of ragged operations, which tests spoil one by one. Their addresses are checked
// but never read.

#include <tmap/ragged.hpp>

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

/// Returns the run of calls that end before anything is enqueued.
inline run on_a_stream(const workspace& scratch = {}) {
  return {on_stream{no_stream, scratch}};
}

/// Expects that both engines refuse the argument of this name in `call(run)` with the same message.
template <class Call>
void expect_both_refuse(const Call& call, const std::string& name, const std::string& what = {}) {
  const run there = on_a_stream(enough(max_rank));
  const run here{on_host{}};
  const result<void> from_gpu = call(there);
  const result<void> from_host = call(here);
  expect_refused(from_gpu, name, what + ", on the GPU");
  expect_refused(from_host, name, what + ", on the host");
  if (!from_gpu && !from_host) {
    EXPECT_EQ(to_string(from_gpu.error()), to_string(from_host.error())) << what;
  }
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
