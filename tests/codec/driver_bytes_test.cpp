// SPDX-License-Identifier: Apache-2.0
// Tests that encode_bits writes the driver's 128 bytes. Needs a GPU, because the driver only
// encodes in a context.

#include <gtest/gtest.h>
#include <tmap/decode.hpp>
#include <tmap/encode.hpp>

#include "support/random_spec.hpp"
#include "support/spec_text.hpp"

namespace tmap {
namespace {

std::string differences(const tensor_map& ours, const tensor_map& drivers) {
  std::string text;
  const auto found = diff(ours, drivers);
  if (!found) return to_string(found.error());
  for (const field_difference& d : *found) {
    text += d.field + ": ours " + d.first + ", the driver's " + d.second + "\n";
  }
  return text;
}

template <class Spec, class Next>
void expect_driver_bytes(int count, Next next) {
  for (int i = 0; i < count; ++i) {
    const Spec spec = next();
    const auto drivers = encode(spec);
    ASSERT_TRUE(drivers) << to_string(drivers.error()) << '\n' << testing::to_text(spec);
    const auto ours = encode_bits(spec);
    ASSERT_TRUE(ours) << testing::to_text(spec);
    if (*ours != *drivers) FAIL() << differences(*ours, *drivers) << testing::to_text(spec);
  }
}

bool has_gpu() {
  return query_device_limits().has_value();
}

TEST(driver_bytes, equal_for_two_million_tiled_specs) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  testing::random_spec_source source{31};
  expect_driver_bytes<tensor_spec>(2'000'000, [&] { return source.legal(); });
}

TEST(driver_bytes, equal_for_im2col_specs) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  testing::random_spec_source source{32};
  expect_driver_bytes<im2col_spec>(200'000, [&] { return source.legal_im2col(); });
}

}  // namespace
}  // namespace tmap
