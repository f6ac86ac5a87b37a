// SPDX-License-Identifier: Apache-2.0
// Runs the samples of ragged operations on the engine TMAP_ENGINE from the command line, and
// compares their files with plain loops.
#include <cmath>
#include <cstring>

#include "device/gpu_fixture.hpp"
#include "tests/apps/pad_files.hpp"
#include "tests/apps/run_tool.hpp"

#include <gmock/gmock.h>

namespace tmap::testing {
namespace {

using ::testing::HasSubstr;

/// Returns the numbers of a .npy file of f32.
std::vector<float> floats_of(const std::string& path) {
  const auto read = tool::read_npy(stored(to_bytes(read_text_file(path))));
  EXPECT_TRUE(read) << path;
  if (!read) return {};
  std::vector<float> values(read->bytes.size() / sizeof(float));
  std::memcpy(values.data(), read->bytes.data(), read->bytes.size());
  return values;
}

class TMAP_SUITE : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    const bool has_gpu = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
    if (std::string{TMAP_ENGINE} == "gpu" && !has_gpu) GTEST_SKIP() << "no GPU";
  }

  tool_result run(std::vector<std::string> command) const {
    command.insert(command.end(), {"--engine", TMAP_ENGINE});
    tool_result result = run_program(command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, ::testing::IsEmpty());
    return result;
  }

  temporary_folder folder_;
};

TEST_F(TMAP_SUITE, sequences_lose_their_largest_value) {
  std::vector<std::string> lines{"hello world", "", "ab", "x", std::string(5000, 'q') + "z"};
  for (int i = 0; i < 40; ++i) lines.push_back(counting_bytes(static_cast<std::size_t>(i) * 7 % 61, 11));
  std::string text;
  std::vector<float> expected;
  for (std::string& line : lines) {
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += line + "\n";
    float largest = 0;
    for (const char c : line) largest = std::max(largest, static_cast<float>(static_cast<unsigned char>(c)));
    for (const char c : line) expected.push_back(static_cast<float>(static_cast<unsigned char>(c)) - largest);
  }
  const std::string input = folder_.write("lines.txt", text);
  const tool_result result = run({TMAP_SEQUENCES, input, "--out", folder_ / "out.npy"});
  EXPECT_THAT(result.out, HasSubstr("45 sequences of at most 5001 values"));
  EXPECT_EQ(floats_of(folder_ / "out.npy"), expected);
}

TEST_F(TMAP_SUITE, pictures_become_a_normalised_batch) {
  const std::pair<std::uint32_t, std::uint32_t> sizes[] = {{31, 7}, {5, 40}, {1, 1}, {64, 33}};
  std::vector<tool::tensor> pictures;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const bytes_t png = sample_png(sizes[i].first, sizes[i].second, i);
    folder_.write("picture" + std::to_string(i) + ".png", png);
    pictures.push_back(*tool::read_png(png, 1 << 20));
  }
  run({TMAP_IMAGES, folder_.string(), "--out", folder_ / "out"});
  const std::vector<float> batch = floats_of(folder_ / "out/batch.npy");
  ASSERT_EQ(batch.size(), 4u * 3 * 40 * 64);
  const double mean[] = {0.485, 0.456, 0.406};
  const double deviation[] = {0.229, 0.224, 0.225};
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::size_t x = i % 64;
    const std::size_t y = i / 64 % 40;
    const std::size_t c = i / (64 * 40) % 3;
    const tool::tensor& picture = pictures[i / (64 * 40 * 3)];
    double expected = 0;
    if (y < picture.shape[0] && x < picture.shape[1]) {
      const auto byte = std::to_integer<int>(picture.bytes[(y * picture.shape[1] + x) * 3 + c]);
      expected = (byte / 255.0 - mean[c]) / deviation[c];
    }
    ASSERT_NEAR(batch[i], expected, 1e-5) << i;
  }
  EXPECT_THAT(read_text_file(folder_ / "out/sheet.png"), ::testing::StartsWith("\x89PNG"));
}

TEST_F(TMAP_SUITE, signals_get_their_envelope) {
  for (const std::size_t radius : {std::size_t{0}, std::size_t{15}, std::size_t{700}}) {
    std::vector<float> signal(5003);
    for (std::size_t i = 0; i < signal.size(); ++i) signal[i] = std::sin(static_cast<float>(i * i % 977));
    const std::string_view bytes{reinterpret_cast<const char*>(signal.data()), signal.size() * sizeof(float)};
    const std::string input = folder_.write("signal.npy", npy_of("<f4", "(5003,)", std::string{bytes}));
    const tool_result result = run({TMAP_POOL, "--input", input, "--radius", std::to_string(radius), "--out",
                                    folder_ / "out.npy", "--picture", folder_ / "out.png"});
    EXPECT_THAT(result.out, ::testing::AllOf(HasSubstr("copy"), HasSubstr("max_pool_1d"), HasSubstr("GB/s")));
    const std::vector<float> found = floats_of(folder_ / "out.npy");
    ASSERT_EQ(found.size(), 2 * signal.size());
    for (std::size_t i = 0; i < signal.size(); ++i) {
      const auto first = signal.begin() + static_cast<std::ptrdiff_t>(i - std::min(i, radius));
      const auto last = signal.begin() + static_cast<std::ptrdiff_t>(std::min(i + radius + 1, signal.size()));
      const float top = *std::max_element(first, last);
      ASSERT_EQ(found[i], top) << i;
      ASSERT_EQ(found[signal.size() + i], top - signal[i]) << i;
    }
    EXPECT_THAT(read_text_file(folder_ / "out.png"), ::testing::StartsWith("\x89PNG"));
  }
}

TEST_F(TMAP_SUITE, fails_with_a_sentence) {
  const std::string empty = folder_.write("empty.txt", "\n\n");
  const auto expect = [](const std::vector<std::string>& command, const char* sentence) {
    const tool_result result = run_program(command);
    EXPECT_EQ(result.exit_code, 1) << sentence;
    EXPECT_THAT(result.err, HasSubstr(sentence));
  };
  expect({TMAP_SEQUENCES, folder_ / "none.txt", "--engine", TMAP_ENGINE}, "none.txt: it cannot be opened");
  expect({TMAP_SEQUENCES, empty, "--engine", TMAP_ENGINE}, "it holds no line with a character");
  expect({TMAP_IMAGES, empty, "--out", folder_ / "out"}, "empty.txt");
  expect({TMAP_POOL, "--input", folder_ / "none.npy"}, "none.npy: there is no such file");
  expect({TMAP_POOL, "--input", folder_.write("empty.npy", npy_of("<f4", "(0,)", ""))},
         "empty.npy: it holds no numbers");
}

}  // namespace
}  // namespace tmap::testing
