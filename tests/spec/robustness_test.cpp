// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "support/random_spec.hpp"
#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

/// Fills a spec with random bits, including enumerators, ranks and corners.
template <class Spec>
Spec random_bits(random_source& random) {
  Spec spec;
  std::uint64_t words[sizeof(Spec) / 8 + 1];
  for (std::uint64_t& word : words) word = random.one_in(2) ? random.bits() : random.of_random_length(64);
  std::memcpy(static_cast<void*>(&spec), words, sizeof spec);
  return spec;
}

template <class Spec>
void expect_consistent(const Spec& spec, const device_limits& limits) {
  const violations found = validate(spec, limits);
  rule_set errors;
  for (const violation& v : found) {
    ASSERT_LT(static_cast<std::uint32_t>(v.id), rule_count);
    ASSERT_TRUE(v.axis >= -1 && v.axis < static_cast<std::int32_t>(max_rank));
    if (info(v.id).level == severity::error) errors.insert(v.id);
  }
  ASSERT_LT(found.size(), violations::capacity) << "the list may have been cut short";
  ASSERT_EQ(errors, broken_rules(spec, limits));
}

TEST(robustness, any_bits_are_a_legal_argument) {
  random_source random{20};
  for (int i = 0; i < 400'000; ++i) {
    const device_limits limits{static_cast<std::uint32_t>(random.bits()), static_cast<std::uint32_t>(random.bits())};
    expect_consistent(random_bits<tensor_spec>(random), limits);
    expect_consistent(random_bits<im2col_spec>(random), limits);
    expect_consistent(random_bits<im2col_wide_spec>(random), limits);
    if (HasFatalFailure()) return;
  }
}

TEST(robustness, any_bits_are_a_legal_argument_of_the_use_rules) {
  random_source random{21};
  std::uint64_t broken = 0;
  for (int i = 0; i < 200'000; ++i) {
    auto spec = random_bits<tensor_spec>(random);
    if (random.one_in(2)) {
      spec.type = static_cast<element_type>(random.below(element_type_count));
      spec.interleave = static_cast<interleave>(random.below(3));
    }
    std::int32_t coordinates[max_rank];
    for (std::int32_t& c : coordinates) c = static_cast<std::int32_t>(random.bits());
    broken |= check_shared_address(spec, random.bits()).bits;
    broken |= check_load_corner(spec, coordinates).bits;
    broken |= check_store_corner(spec, coordinates).bits;
    broken |= check_reduction(spec, static_cast<reduction>(random.bits())).bits;
    broken |= check_instruction_rank(spec, static_cast<std::uint32_t>(random.bits())).bits;
  }
  rule_set use_rules;
  for (const rule id : {rule::u01_shared_alignment, rule::u03_store_corner, rule::u06_reduction_type,
                        rule::u07_instruction_rank, rule::u09_innermost_coordinate}) {
    use_rules.insert(id);
  }
  EXPECT_EQ(broken, use_rules.bits);
}

/// Compares every sum that validate computes with the same sum in floating point.
TEST(robustness, extents_agree_with_wide_arithmetic) {
  random_spec_source specs{22};
  for (int i = 0; i < 200'000; ++i) {
    const tensor_spec spec = specs.legal();
    long double end = static_cast<long double>(spec.global_address);
    end += static_cast<long double>(detail::row_bytes(spec, spec.global_dim[0]));
    for (std::uint32_t axis = 1; axis < spec.rank; ++axis) {
      end += static_cast<long double>(spec.global_dim[axis] - 1) *
             static_cast<long double>(spec.global_stride_bytes[axis - 1]);
    }
    ASSERT_LE(end, static_cast<long double>(detail::address_limit)) << "a legal spec reaches past the last address";
  }
}

}  // namespace
}  // namespace tmap::testing
