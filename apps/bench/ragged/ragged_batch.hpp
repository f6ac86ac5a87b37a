// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ragged batches in device memory for the benchmarks of ragged operations. Sizes are random, the
// case chooses the layout, and `patch_columns` describe the batch.

#include <tmap/tensor_batch.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "apps/support/device_array.hpp"

namespace tmap::apps::bench {

/// A splitmix64 generator, which gives the same sizes on every machine.
class random_sizes {
 public:
  explicit random_sizes(std::uint64_t seed) : state_{seed} {}
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + bits() % (high - low + 1); }
  /// Returns a number with a uniform logarithm.
  double log_between(double low, double high);

 private:
  std::uint64_t bits();
  std::uint64_t state_;
};

/// Holds the dims of one tensor, innermost first and 1 beyond the rank, and its layout.
struct placed_tensor {
  std::uint64_t dim[max_rank]{1, 1, 1, 1, 1};
  std::uint64_t stride_bytes[max_rank - 1]{};
  std::uint64_t begin{};  ///< from the start of the memory
};

/// States where tensors may begin and how far apart their rows (dimension 0) are.
struct placement {
  std::uint64_t alignment{16};  ///< of the beginnings
  std::uint64_t offset{};       ///< added to each beginning
  std::uint64_t row_gap{};      ///< bytes between rows
};

/// The columns that the benchmark's own kernels read: `stride[i]` is the step of dimension i + 1.
struct tensor_columns {
  const std::uint64_t* address;
  const std::uint64_t* dim[max_rank];
  const std::uint64_t* stride[max_rank - 1];
  std::uint64_t count;
  std::uint32_t element_bytes;
};

/// Owns a batch and its memory.
class device_batch {
 public:
  device_batch(std::vector<placed_tensor> tensors, std::uint32_t element_bytes, std::uint32_t rank,
               const placement& where);

  const std::vector<placed_tensor>& tensors() const { return tensors_; }
  const tensor_batch& described() const { return described_; }
  tensor_columns columns() const;
  /// Returns the bytes of all elements.
  std::uint64_t bytes() const { return bytes_; }
  const device_array<unsigned char>& memory() const { return *memory_; }
  std::uint64_t address(std::uint64_t i) const {
    return reinterpret_cast<std::uint64_t>(memory_->get()) + tensors_[i].begin;
  }

 private:
  void place(const placement& where);
  void describe();

  std::vector<placed_tensor> tensors_;
  std::uint32_t element_bytes_;
  std::uint32_t rank_;
  std::uint64_t span_{};
  std::uint64_t bytes_{};
  std::unique_ptr<device_array<unsigned char>> memory_;
  std::vector<std::unique_ptr<device_array<std::uint64_t>>> columns_;
  tensor_batch described_{};
};

}  // namespace tmap::apps::bench
