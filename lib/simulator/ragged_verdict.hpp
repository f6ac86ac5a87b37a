// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/detail/judge_tensors.hpp>
#include <tmap/error.hpp>
#include <tmap/ragged.hpp>
#include <tmap/route.hpp>

#include <cstdint>

#include "lib/support/checking.hpp"

namespace tmap::simulator {

using detail::pair_terms;
using detail::shape_relation;

/// One tensor of an operation: its number, its sides and its status.
struct tensor_pair {
  std::uint64_t index{};
  tensor_layout source;
  tensor_layout destination;
  tensor_layout scales{};  ///< if the call has some
  ragged::tensor_status status{};
  bool has_destination{};  ///< if false, nothing may be written, not even fill
};

/// Returns the terms of `count` tensors whose sides are not packed.
pair_terms terms_of(shape_relation relation, std::uint32_t source_element, std::uint32_t destination_element,
                    std::uint64_t count, const ragged::run& with);

/// Fills in the status of the pair, as the planning kernel of the GPU would. Any bits are legal
/// input.
/// `grid` is null if the call has no scales.
void judge(tensor_pair& pair, const pair_terms& terms, const detail::scale_grid* grid = nullptr);

/// Returns the faults of one row number.
ragged::tensor_status judge_row(std::int64_t row, std::uint64_t rows);

/// The call that judges, and the number of its items.
struct judging_call {
  batch_call which;
  std::uint64_t items;
  const detail::scale_grid* grid{};  ///< of scales, a third side; or null
};

/// Writes statuses and counts them for the header.
class verdict_writer {
 public:
  verdict_writer(const judging_call& call, const ragged::run& with)
      : call_{call}, number_{support::next_call_number()}, with_{with} {}
  ~verdict_writer() {
    if (with_.header != nullptr) *with_.header = header_;
  }
  verdict_writer(const verdict_writer&) = delete;
  verdict_writer& operator=(const verdict_writer&) = delete;

  void write(std::uint64_t index, ragged::tensor_status status);
  /// Call this after the last. Fails with `bad_items` if the call is checked and one was bad.
  [[nodiscard]] result<void> close() const;

 private:
  judging_call call_;
  std::uint64_t number_;
  const ragged::run& with_;
  ragged::tensor_status first_bad_{};
  batch_header header_{};
};

}  // namespace tmap::simulator
