// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/gemm/peers.hpp"
#include "apps/bench/gemm/shapes.hpp"
#include "apps/bench/gemm/values.hpp"
#include "apps/support/device_array.hpp"

// One row of the table: a call, the check of its result, and the same work for cuBLAS.

namespace tmap::apps::bench {

struct subject {
  std::string name;
  double goal{};  ///< TFLOP/s; 0 means none
  double operations{};
  checked_sums sums{};
  std::vector<checked_product> products{};
  void* c{};
  std::size_t c_elements{};  ///< elements of the output's memory, and the number of them that belong to no group
  std::size_t untouched{};
  std::function<void(cudaStream_t, std::optional<std::uint32_t> plan)> enqueue{};
  /// Makes the same call with empty groups: it costs the time to read sizes, encode maps and
  /// launch.
  std::function<void(cudaStream_t)> enqueue_empty{};

  std::vector<peer_product> peer_products() const;
};

/// Memory for all parts of an epilogue.
struct epilogue_memory {
  const float* row_scales;
  const float* column_scales;
  const void* bias;
  std::uint64_t kept;  ///< the address of normal random numbers
  float* c_scales;
};

/// Owns the memory of all subjects, of which one exists at a time. The memory holds normal random
/// numbers of the most recent type.
class operand_memory {
 public:
  operand_memory();
  /// Writes all of the memory.
  void fill(gemm::operand_type type);

  subject rows(const row_shape& shape, const std::vector<std::int64_t>& sizes, bool fast_accumulation = false);
  subject weights(const row_shape& shape, const std::vector<std::int64_t>& sizes);
  subject pointers(const std::vector<pointer_size>& sizes);

  /// Returns the problem of a subject. Its groups have these sizes until another one is made.
  gemm::row_problem row_problem_of(const row_shape& shape, const std::vector<std::int64_t>& sizes);
  gemm::weight_problem weight_problem_of(const row_shape& shape, const std::vector<std::int64_t>& sizes);
  /// Uses the second half of the memory of C.
  epilogue_memory epilogues();
  workspace scratch() const { return {scratch_.get(), scratch_.bytes()}; }

 private:
  void set_offsets(const std::vector<std::int64_t>& sizes);
  std::uint64_t address_of(const device_array<unsigned char>& of) const;
  void add_pointers(subject& made, const std::vector<pointer_size>& sizes);

  gemm::operand_type type_{};
  device_array<unsigned char> a_;
  device_array<unsigned char> b_;
  device_array<unsigned char> c_;
  device_array<float> row_scales_;
  device_array<float> column_scales_;
  device_array<unsigned char> scratch_;
  device_array<std::int64_t> offsets_;
  device_array<std::int64_t> no_rows_;
  device_array<std::int64_t> columns_;  ///< nine arrays of the pointer form
};

}  // namespace tmap::apps::bench
