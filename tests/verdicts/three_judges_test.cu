// SPDX-License-Identifier: Apache-2.0
// Compares 10^8 verdicts of host, device and driver. Where the driver's differs, the rule table
// states the reason.
#include "verdicts/judgement.cuh"

#include <gmock/gmock.h>

#include <chrono>
#include <iostream>

namespace tmap::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t patch_chunks = 128;
constexpr std::uint64_t tiled_chunks = 64;
constexpr std::uint64_t im2col_chunks = 16;
static_assert(patch_chunks * chunk_items >= 100'000'000);

constexpr rule_set only(rule id) {
  rule_set rules;
  rules.insert(id);
  return rules;
}

class three_judges : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    const result<device_limits> limits = query_device_limits();
    TMAP_ASSERT_OK(limits);
    limits_ = *limits;
  }

  template <class Population>
  void expect_agreement(std::uint64_t chunks, std::initializer_list<rule> ours_alone) {
    const auto begin = std::chrono::steady_clock::now();
    judgement<Population> all{limits_, {}};
    all.run(chunks);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(all.surprise(), "");
    EXPECT_EQ(all.book().judged(), chunks * chunk_items);
    EXPECT_GE(2 * all.book().refused(), all.book().judged()) << "at least half break a rule";
    for (const rule id : ours_alone) EXPECT_GT(deviations_by(all.book(), id), 0u) << info(id).name;
    std::cout << all.book().report(Population::name) << "  in " << seconds.count() << " s\n";
    record(all.book());
  }

  template <class Population>
  std::string surprise_with(const blindness& blind) const {
    judgement<Population> one{limits_, blind};
    one.run(1);
    return one.surprise();
  }

 private:
  static std::uint64_t deviations_by(const verdict_book& book, rule id) {
    const auto found = book.deviations().find(only(id).bits);
    return found == book.deviations().end() ? 0 : found->second;
  }

  static void record(const verdict_book& book) {
    RecordProperty("judged", std::to_string(book.judged()));
    RecordProperty("refused", std::to_string(book.refused()));
    RecordProperty("driver_asked", std::to_string(book.driver_asked()));
    RecordProperty("driver_refused", std::to_string(book.driver_refused()));
    for (const auto& [verdict, count] : book.deviations()) {
      std::string key = "driver_accepts_" + rule_names(verdict);
      std::replace(key.begin(), key.end(), ' ', '_');
      RecordProperty(key, std::to_string(count));
    }
  }

  device_limits limits_;
};

TEST_F(three_judges, agree_about_patches) {
  expect_agreement<patch_population>(scaled(patch_chunks), {rule::t05_address_null, rule::t34_extent_range,
                                                            rule::t36_global_dim_copied, rule::t38_address_window});
}

TEST_F(three_judges, agree_about_tiled_specs) {
  expect_agreement<tiled_population>(scaled(tiled_chunks), {rule::t05_address_null, rule::t25_interleave_32_swizzle,
                                                            rule::t34_extent_range, rule::t36_global_dim_copied});
}

TEST_F(three_judges, agree_about_im2col_specs) {
  expect_agreement<im2col_population>(scaled(im2col_chunks), {rule::t05_address_null, rule::t25_interleave_32_swizzle,
                                                              rule::t34_extent_range, rule::t36_global_dim_copied});
}

// Seeds faults: each judge in turn overlooks one rule.

TEST_F(three_judges, a_blind_host_is_found_out) {
  EXPECT_THAT(surprise_with<patch_population>({.host = only(rule::t37_box_bytes)}), HasSubstr("T37"));
  EXPECT_THAT(surprise_with<tiled_population>({.host = only(rule::t25_interleave_32_swizzle)}), HasSubstr("T25"));
}

TEST_F(three_judges, a_blind_device_is_found_out) {
  const std::string patch = surprise_with<patch_population>({.device = only(rule::t36_global_dim_copied)});
  EXPECT_THAT(patch, HasSubstr("the device finds"));
  EXPECT_THAT(patch, HasSubstr("T36"));
  const std::string spec = surprise_with<im2col_population>({.device = only(rule::i04_box_area)});
  EXPECT_THAT(spec, HasSubstr("the device finds"));
  EXPECT_THAT(spec, HasSubstr("I04"));
}

TEST_F(three_judges, a_blind_driver_is_found_out) {
  const std::string patch = surprise_with<patch_population>({.driver = only(rule::t18_inner_box_multiple_of_16)});
  EXPECT_THAT(patch, HasSubstr("the driver accepts, the host T18;"));
  const std::string spec = surprise_with<tiled_population>({.driver = only(rule::t30_oob_fill)});
  EXPECT_THAT(spec, HasSubstr("the driver accepts, the host T30;"));
}

}  // namespace
}  // namespace tmap::testing
