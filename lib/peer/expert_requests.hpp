// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes a dispatch or combine to its kernels: as offsets in the window of this rank.

#include <tmap/bad_items.hpp>
#include <tmap/expert_parallel.hpp>

#include <cstddef>
#include <cstdint>

#include "kernels/peer_launch.hpp"
#include "lib/peer/call_checks.hpp"
#include "lib/peer/expert_places.hpp"

namespace tmap::expert_parallel {

/// Returns a number of 24 bits in which shapes differ. Any member may be the one that differs.
std::uint32_t shape_word(const shape& sizes);

/// Refers to the window, the sizes and the workspace of one call.
class call_parts {
 public:
  call_parts(const peer_memory& window, const shape& sizes, const run& with, const places& at)
      : window_(window.ref()), sizes_(sizes), with_(with), at_(at) {}

  const peer_memory_ref& window() const { return window_; }
  const shape& sizes() const { return sizes_; }
  const places& at() const { return at_; }
  std::uint32_t ranks() const { return window_.ranks; }
  std::uint64_t rows() const { return row_count(sizes_, ranks()); }
  cudaStream_t stream() const { return with_.stream.get(); }
  std::uint64_t patience() const { return peer::nanoseconds(with_.patience); }

  /// Returns the address of a part.
  template <class T>
  T* part(std::uint64_t begin) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(with_.scratch.memory) + begin);
  }
  /// Returns how `moe` runs; routes work in the same workspace.
  moe::run route_run(batch_header* header) const {
    return {.where = {with_.stream, {part<void>(at_.scratch), at_.scratch_bytes}},
            .header = header,
            .check = fault_check::off};
  }

  /// `pending`: as `dispatch_problem::pending`, or null.
  kernels::peer::expert_arrays arrays(const std::uint32_t* pending = nullptr) const;
  kernels::peer::exchange_request records() const;
  /// Returns the same by one block, which sends records that are few.
  kernels::peer::exchange_request few_records() const;
  /// Describes the fetch of a dispatch by `run::blocks` blocks and one that prepares it.
  kernels::peer::fetch_request few_rows_of(const dispatch_problem& problem) const;
  kernels::peer::fetch_request rows_of(const dispatch_problem& problem) const;
  kernels::peer::sums_request sums() const;
  /// Returns the exchange that brings the places of rows to the owners of their tokens.
  kernels::peer::exchange_request places_of_rows() const;
  kernels::peer::fetch_request results_of(const combine_problem& problem) const;

 private:
  kernels::peer::pending_groups pending_of(const std::uint32_t* words) const;
  /// Returns the offset of a part in the window.
  std::uint64_t offset(std::uint64_t begin) const { return peer::offset_of(window_, part<void>(begin)); }
  std::uint64_t offset(const gemm::matrix& of) const { return of.address - window_.windows[window_.rank]; }

  kernels::peer::exchange_request request() const;
  kernels::peer::fetch_request fetching(std::uint32_t row_bytes) const;

  const peer_memory_ref& window_;
  const shape& sizes_;
  const run& with_;
  const places& at_;
};

}  // namespace tmap::expert_parallel
