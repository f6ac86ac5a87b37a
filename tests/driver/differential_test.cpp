// SPDX-License-Identifier: Apache-2.0
#include "device/gpu_fixture.hpp"

#include <tmap/encode.hpp>

#include <map>
#include <string>

#include "lib/driver/map_driver.hpp"
#include "lib/driver/raw_calls.hpp"
#include "support/random_spec.hpp"
#include "support/rule_cases.hpp"
#include "support/spec_text.hpp"

// Compares the driver's verdict with the rule table's, for each rule alone and over random specs.

namespace tmap::testing {
namespace {

bool refused(const tensor_spec& spec) {
  tensor_map map;
  return driver::raw_encode(driver::process_driver().functions().encode_tiled().value(), spec, map) != CUDA_SUCCESS;
}

bool refused(const im2col_spec& spec) {
  tensor_map map;
  return driver::raw_encode(driver::process_driver().functions().encode_im2col().value(), spec, map) != CUDA_SUCCESS;
}

bool refused(const im2col_wide_spec& spec) {
  tensor_map map;
  return driver::raw_encode(driver::process_driver().functions().encode_im2col_wide().value(), spec, map) !=
         CUDA_SUCCESS;
}

bool refused(const any_spec& spec) {
  return std::visit([](const auto& each) { return refused(each); }, spec);
}

template <class Spec>
rule_set refusing_rules(const Spec& spec, const device_limits& limits) {
  rule_set refusing;
  for (const violation& v : validate(spec, limits)) {
    if (info(v.id).driver_refuses) refusing.insert(v.id);
  }
  return refusing;
}

class driver_verdict : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    TMAP_ASSERT_OK(encode(plain_spec()));
    limits_ = query_device_limits().value();
  }

  device_limits limits_;
};

TEST_F(driver_verdict, each_rule_alone_is_refused_as_the_table_says) {
  std::uint32_t asked = 0;
  for (const rule_case& each : all_rule_cases()) {
    if (each.limits.compute_capability > limits_.compute_capability) continue;
    EXPECT_EQ(refused(each.spec), info(each.id).driver_refuses) << info(each.id).name << ": " << each.what;
    ++asked;
  }
  EXPECT_GE(asked, 50u);
}

TEST_F(driver_verdict, the_specs_that_break_nothing_are_accepted) {
  EXPECT_FALSE(refused(plain_spec()));
  EXPECT_FALSE(refused(interleaved_spec(interleave::bytes_16)));
  EXPECT_FALSE(refused(interleaved_spec(interleave::bytes_32)));
  EXPECT_FALSE(refused(plain_im2col_spec()));
}

TEST_F(driver_verdict, unusual_specs_are_accepted) {
  const auto accepts = [](auto change) {
    tensor_spec spec = plain_spec();
    change(spec);
    return !refused(spec);
  };
  EXPECT_TRUE(accepts([](auto& s) { s.global_dim[1] = std::uint64_t{1} << 32; })) << "a dim no copy may use";
  EXPECT_TRUE(accepts([](auto& s) { s.global_stride_bytes[0] = 0; })) << "every row the same";
  EXPECT_TRUE(accepts([](auto& s) { s.global_stride_bytes[0] = 16; })) << "rows that overlap";
  EXPECT_TRUE(accepts([](auto& s) { s.global_address = 0; })) << "a null base";
  EXPECT_TRUE(accepts([](auto& s) { s.global_dim[0] = s.global_dim[1] = 1; })) << "a box larger than the tensor";
}

/// Groups mismatches by the rules that tmap found, so that one failure does not hide the others.
class mismatches {
 public:
  template <class Spec>
  void compare(const Spec& spec, const device_limits& limits) {
    const rule_set refusing = refusing_rules(spec, limits);
    const bool driver_refuses = refused(spec);
    ++(driver_refuses ? refused_ : accepted_);
    if (driver_refuses == !refusing.empty()) return;
    ++count_;
    std::string key = driver_refuses ? "driver refuses, we find nothing" : "driver accepts, we find";
    for (std::uint32_t i = 0; i < rule_count; ++i) {
      if (refusing.contains(static_cast<rule>(i))) key += std::string{" "} + info(static_cast<rule>(i)).name;
    }
    std::string& example = examples_[key];
    if (example.empty()) example = to_text(spec);
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t refused_count() const { return refused_; }
  std::uint64_t accepted_count() const { return accepted_; }

  std::string report() const {
    std::string text;
    for (const auto& [key, example] : examples_) text += "\n" + key + "\n    " + example;
    return text;
  }

 private:
  std::map<std::string, std::string> examples_;
  std::uint64_t count_{};
  std::uint64_t refused_{};
  std::uint64_t accepted_{};
};

TEST_F(driver_verdict, random_tiled_specs) {
  random_spec_source specs{31};
  mismatches found;
  const std::uint64_t count = scaled(1'000'000);
  for (std::uint64_t i = 0; i < count; ++i) found.compare(specs.any(), limits_);
  EXPECT_EQ(found.count(), 0u) << found.report();
  EXPECT_GT(found.refused_count(), count / 10);
  EXPECT_GT(found.accepted_count(), count / 10);
}

TEST_F(driver_verdict, random_im2col_specs) {
  random_spec_source specs{32};
  mismatches found;
  const std::uint64_t count = scaled(1'000'000);
  for (std::uint64_t i = 0; i < count; ++i) found.compare(specs.any_im2col(), limits_);
  EXPECT_EQ(found.count(), 0u) << found.report();
  EXPECT_GT(found.refused_count(), count / 10);
  EXPECT_GT(found.accepted_count(), count / 10);
}

TEST_F(driver_verdict, replace_address_equals_encoding_anew) {
  random_spec_source specs{33};
  for (int i = 0; i < 10'000; ++i) {
    tensor_spec spec = specs.legal();
    const auto first = encode(spec);
    TMAP_ASSERT_OK(first);
    spec.global_address = 32 * (1 + specs.random().below(1u << 30));
    const auto moved = replace_address(*first, spec.global_address);
    TMAP_ASSERT_OK(moved);
    if (!broken_rules(spec).empty()) continue;
    ASSERT_EQ(*moved, encode(spec).value()) << to_text(spec);
  }
}

}  // namespace
}  // namespace tmap::testing
