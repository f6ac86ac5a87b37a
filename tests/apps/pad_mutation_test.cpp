// SPDX-License-Identifier: Apache-2.0
// Tests damaged files: every byte changed, every length truncated, and random damage. The readers
// may refuse or accept such a file, but they must not crash, read outside their memory (the
// sanitizers check this), or return a tensor whose bytes do not match its shape.
#include "apps/tmap/pad/inputs.hpp"
#include "tests/apps/pad_files.hpp"
#include "tests/apps/sample_jpeg.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tmap::tool {
namespace {

using namespace tmap::testing;

constexpr std::uint64_t mutant_budget = 1 << 22;

struct sample {
  const char* name;
  bytes_t file;
};

void PrintTo(const sample& s, std::ostream* out) {
  *out << s.name;
}

void expect_sound(const loaded_inputs& loaded) {
  EXPECT_GT(loaded.tensors.size() + loaded.failures.size(), 0u);
  for (const tensor& t : loaded.tensors) {
    ASSERT_EQ(dense_bytes(t.shape, t.type), t.bytes.size());
    ASSERT_LE(t.bytes.size(), t.storage->size());
    volatile std::byte last = t.bytes.back();
    static_cast<void>(last);
  }
}

class damage : public ::testing::TestWithParam<sample> {
 protected:
  loaded_inputs read(bytes_t file) const { return read_tensors(GetParam().name, std::move(file), mutant_budget); }
};

TEST_P(damage, the_file_is_sound_before) {
  const loaded_inputs loaded = read(GetParam().file);
  EXPECT_TRUE(loaded.failures.empty()) << loaded.failures.front();
  EXPECT_FALSE(loaded.tensors.empty());
  expect_sound(loaded);
}

TEST_P(damage, any_byte_changed) {
  for (std::size_t i = 0; i < GetParam().file.size(); ++i) {
    for (const unsigned change : {0x01u, 0x80u, 0xffu}) {
      bytes_t file = GetParam().file;
      file[i] ^= static_cast<std::byte>(change);
      expect_sound(read(std::move(file)));
    }
  }
}

TEST_P(damage, cut_short_is_refused) {
  constexpr std::size_t closing_marks = 16;  // PNG and JPEG end with marks that follow all pixels
  const bytes_t& whole = GetParam().file;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto end = whole.begin() + static_cast<std::ptrdiff_t>(length);
    const loaded_inputs loaded = read({whole.begin(), end});
    expect_sound(loaded);
    EXPECT_TRUE(!loaded.failures.empty() || length + closing_marks >= whole.size()) << "at " << length;
  }
}

TEST_P(damage, many_bytes_changed) {
  std::mt19937 random{42};
  for (int round = 0; round < 3000; ++round) {
    bytes_t file = GetParam().file;
    for (std::uint32_t n = 1 + random() % 8; n > 0; --n)
      file[random() % file.size()] = static_cast<std::byte>(random());
    if (random() % 4 == 0) file.resize(random() % file.size());
    expect_sound(read(std::move(file)));
  }
}

/// The reader checks checksums: no changed byte goes unnoticed and yields different pixels.
TEST(png_damage, is_refused_or_harmless) {
  const bytes_t whole = sample_png(24, 17);
  const loaded_inputs before = read_tensors("a.png", whole, mutant_budget);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    bytes_t file = whole;
    file[i] ^= std::byte{4};
    const loaded_inputs after = read_tensors("a.png", file, mutant_budget);
    refused += after.failures.size();
    for (const tensor& t : after.tensors) EXPECT_TRUE(std::ranges::equal(t.bytes, before.tensors[0].bytes)) << i;
  }
  EXPECT_GT(refused, whole.size() * 3 / 4);
}

std::vector<sample> samples() {
  safetensors_writer tensors;
  tensors.add("a", "F32", {3, 5}, 4);
  tensors.add("b", "U8", {7}, 1);
  return {{"a.png", sample_png(24, 17)},
          {"a.jpg", sample_jpeg(24, 17, {30, 200, 90})},
          {"a.npy", to_bytes(npy_of("<f4", "(3, 5)", counting_bytes(60)))},
          {"a.safetensors", to_bytes(tensors.file())}};
}

std::string kind(const ::testing::TestParamInfo<sample>& info) {
  return std::filesystem::path{info.param.name}.extension().string().substr(1);
}

INSTANTIATE_TEST_SUITE_P(files, damage, ::testing::ValuesIn(samples()), kind);

}  // namespace
}  // namespace tmap::tool
