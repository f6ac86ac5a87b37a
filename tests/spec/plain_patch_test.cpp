// SPDX-License-Identifier: Apache-2.0
// Tests that the quick check passes nothing that breaks a rule, and stops no ordinary patch.
#include <tmap/patch_rules.hpp>

#include <gtest/gtest.h>

#include <vector>

#include "support/patch_cases.hpp"
#include "support/spec_text.hpp"

namespace tmap::testing {
namespace {

/// Returns windows that end exactly at the tensor's end, one unit before, and so on.
std::vector<address_window> windows_around(const tensor_spec& spec, random_source& random) {
  const detail::uint128 reach = (detail::reach_bytes(spec, detail::readable_rank(spec)) + 15) / 16 * 16;
  const std::uint64_t end = detail::saturate(spec.global_address + reach);
  const std::uint64_t nudge[] = {0, 0, 1, 16, ~std::uint64_t{0}, ~std::uint64_t{0} - 15};
  return {{0x1000, 0x2000}, {spec.global_address + nudge[random.below32(6)], end + nudge[random.below32(6)]}};
}

TEST(plain_patch, lets_nothing_pass_that_breaks_a_rule) {
  random_patch_source source{29};
  constexpr std::uint64_t count = 2'000'000;
  std::uint64_t passed = 0;
  std::uint64_t good = 0;
  map_template base;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % 16 == 0) base = source.base();
    const tensor_spec spec = patched_spec(base, source.any(base));
    std::vector<address_window> windows;
    if (source.random().one_in(2)) windows = windows_around(spec, source.random());
    const auto window_count = static_cast<std::uint32_t>(windows.size());
    const bool is_good = detail::judge_by_rules(spec, base.fields, windows.data(), window_count).is_good();
    const bool is_plain = detail::is_plainly_good(spec, base.fields, windows.data(), window_count);
    ASSERT_LE(is_plain, is_good) << to_text(spec);
    good += is_good;
    passed += is_plain;
  }
  EXPECT_GT(good, count / 8);
  EXPECT_GT(passed, good / 4);
}

/// Returns a tensor of the longest rows. Its other axes all reach `steps` times `stride` far.
tensor_spec far_spec(element_type type, std::uint32_t rank, std::uint64_t steps, std::uint64_t stride) {
  tensor_spec spec;
  spec.global_address = detail::address_limit / 2;  // no higher address is plain
  spec.type = type;
  spec.rank = rank;
  spec.global_dim[0] = detail::max_copied_dim;
  spec.box_dim[0] = 16;
  for (std::uint32_t axis = 1; axis < rank; ++axis) {
    spec.global_dim[axis] = steps + 1;
    spec.global_stride_bytes[axis - 1] = stride;
    spec.box_dim[axis] = 1;
  }
  return spec;
}

TEST(plain_patch, lets_no_tensor_pass_that_ends_beyond_all_addresses) {
  std::uint32_t passed = 0;
  std::uint32_t beyond = 0;
  for (const element_type type : {element_type::u8, element_type::u64}) {
    for (std::uint32_t rank = 2; rank <= max_rank; ++rank) {
      for (std::uint32_t shift = 0; shift < 31; ++shift) {
        for (std::uint32_t top = 4; top <= 40; ++top) {
          const tensor_spec spec =
              far_spec(type, rank, std::uint64_t{1} << shift, (std::uint64_t{1} << top) - detail::unit_bytes);
          const patch_fields fields = patch_extents(rank);
          const bool is_plain = detail::is_plainly_good(spec, fields, nullptr, 0);
          const rule_set broken = broken_patch_rules(spec, fields);
          ASSERT_FALSE(is_plain && !broken.empty()) << to_text(spec);
          passed += is_plain;
          beyond += broken.contains(rule::t34_extent_range);
        }
      }
    }
  }
  EXPECT_GT(passed, 1000u);
  EXPECT_GT(beyond, 1000u);
}

TEST(plain_patch, stops_each_rule_broken_alone) {
  for (const patch_case& each : all_patch_cases()) {
    const map_template base = make_zeroed_template(each.base, patch_everything(each.base.rank)).value();
    EXPECT_FALSE(detail::is_plainly_good(patched_spec(base, each.bad), base.fields, nullptr, 0)) << each.what;
  }
}

TEST(plain_patch, lets_no_box_pass_that_is_wider_than_its_swizzle) {
  for (std::uint32_t mode = 0; mode <= 7; ++mode) {
    for (std::uint32_t bytes = 16; bytes <= detail::max_box_dim; bytes += 16) {
      const std::uint64_t dims[] = {1024, 16};
      const std::uint32_t box[] = {bytes, 2};
      tensor_spec spec = packed_spec(element_type::u8, 4096, dims, box);
      spec.swizzle = swizzle{mode};
      const bool is_plain = detail::is_plainly_good(spec, patch_everything(2), nullptr, 0);
      EXPECT_LE(is_plain, broken_patch_rules(spec, patch_everything(2)).empty()) << mode << ", " << bytes;
    }
  }
}

TEST(plain_patch, stops_no_ordinary_tensor) {
  const std::uint64_t dims[] = {1 << 10, 256, 64, 16, 8};
  const std::uint32_t box[] = {16, 8, 4, 2, 1};
  for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
    for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
      for (const std::uint64_t address : {std::uint64_t{16}, std::uint64_t{0x7f4200000000}}) {
        const tensor_spec spec = packed_spec(element_type{type}, address, {dims, rank}, {box, rank});
        EXPECT_TRUE(detail::is_plainly_good(spec, patch_everything(rank), nullptr, 0)) << to_text(spec);
      }
    }
  }
}

}  // namespace
}  // namespace tmap::testing
