// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/tile_case.hpp"
#include "support/random_spec.hpp"

#include <vector>

namespace tmap::conformance {

/// Describes what a case must have. `case_source` draws everything else at random.
struct case_class {
  element_type type{};
  std::uint32_t rank{};
  tmap::swizzle swizzle{};
  tmap::interleave interleave{};
  oob_fill fill{};
  bool has_steps{};
  place where{};
  copy_kind kind{};
  reduction operation{};
};

/// Draws legal cases of a class that fit the arena. The same seed yields the same cases on every
/// machine.
class case_source {
 public:
  explicit case_source(std::uint64_t seed) : random_{seed} {}

  tile_case draw(const case_class& wanted);

 private:
  bool try_draw(const case_class& wanted, tile_case& tile);
  void choose_box(const case_class& wanted, tensor_spec& spec);
  void choose_dims(const case_class& wanted, tensor_spec& spec);
  void choose_strides(const case_class& wanted, tensor_spec& spec);
  void choose_corner(const case_class& wanted, tile_case& tile);
  std::int64_t corner_at(place where, std::int64_t dim, std::int64_t reach, bool may_be_negative);

  testing::random_source random_;
};

/// Returns every legal class of type, rank, swizzle and interleave once, in a fixed order. The
/// other members have their initial values.
std::vector<case_class> all_layouts();

/// Returns every legal class of type, rank, swizzle, interleave, fill, element strides, place and
/// operation once, and some thousand more at random. The order is fixed, because the golden record
/// depends on it.
std::vector<tile_case> all_cases();

}  // namespace tmap::conformance
