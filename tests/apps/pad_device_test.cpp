// SPDX-License-Identifier: Apache-2.0
// Tests that the GPU and the simulator pad to identical bytes.
#include "tests/apps/pad_files.hpp"
#include "tests/apps/run_tool.hpp"
#include "tests/device/gpu_fixture.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace tmap::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class pad_on_both_engines : public gpu_test {
 protected:
  /// Runs the job on both engines and compares every file except the report. Returns the number of
  /// tensors.
  std::size_t compare(const std::string& input, std::vector<std::string> options = {}) const {
    for (const char* engine : {"gpu", "simulator"}) {
      std::vector<std::string> arguments{"pad", input, "--engine", engine, "--out", folder_ / engine};
      arguments.insert(arguments.end(), options.begin(), options.end());
      const tool_result result = run_tmap(arguments);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_THAT(result.out, StartsWith(std::string{"engine: "} + engine));
    }
    const std::vector<std::string> names = folder_.names("gpu");
    EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(folder_.names("simulator")));
    for (const std::string& name : names) {
      if (name == "report.json") continue;
      EXPECT_TRUE(read_text_file(folder_ / ("gpu/" + name)) == read_text_file(folder_ / ("simulator/" + name))) << name;
    }
    std::size_t tensors = 0;
    const auto report = nlohmann::json::parse(read_text_file(folder_ / "gpu/report.json"));
    for (const auto& batch : report["batches"]) tensors += batch["tensors"].size();
    EXPECT_THAT(report["gpu"].get<std::string>(), HasSubstr("NVIDIA"));
    return tensors;
  }

  temporary_folder folder_;
};

TEST_F(pad_on_both_engines, twenty_four_pictures) {
  std::filesystem::create_directory(folder_ / "in");
  for (std::uint32_t i = 0; i < 24; ++i) {
    folder_.write("in/picture" + std::to_string(i) + ".png", sample_png(30 + i * 71 % 500, 20 + i * 37 % 400, i));
  }
  EXPECT_EQ(compare(folder_ / "in"), 24u);
  EXPECT_EQ(compare(folder_ / "in", {"--crop", "min"}), 24u);
  EXPECT_EQ(compare(folder_ / "in", {"--crop", "224,224,3"}), 24u);
}

TEST_F(pad_on_both_engines, rows_of_any_pitch) {
  std::filesystem::create_directory(folder_ / "in");
  std::filesystem::create_directory(folder_ / "bytes");
  for (std::uint32_t i = 0; i < 40; ++i) {
    folder_.write("in/odd" + std::to_string(i) + ".png", sample_png(1 + i * 13 % 333, 1 + i * 29 % 90, i));
    const std::size_t rows = 1 + i * 977 % 4000;
    const std::string shape = fmt::format("({}, 1)", rows);
    folder_.write("bytes/" + std::to_string(i) + ".npy", npy_of("|u1", shape, counting_bytes(rows, i)));
  }
  EXPECT_EQ(compare(folder_ / "in"), 40u) << "3-byte pixels, odd widths";
  EXPECT_EQ(compare(folder_ / "bytes"), 40u) << "rows of 1 byte";
}

TEST_F(pad_on_both_engines, tensors_without_elements) {
  safetensors_writer writer;
  for (std::uint64_t i = 0; i < 12; ++i) {
    writer.add("flat" + std::to_string(i), "F32", {i * 5 % 4 * 9}, 4);
    writer.add("square" + std::to_string(i), "F16", {i % 3 * 40, i % 4 * 16}, 2);
    writer.add("odd" + std::to_string(i), "U8", {i % 4, 1 + i % 3, i % 5}, 1);
  }
  const std::string file = folder_.write("model.safetensors", writer.file());
  EXPECT_EQ(compare(file), 36u);
  EXPECT_EQ(compare(file, {"--crop", "min"}), 36u);
}

TEST_F(pad_on_both_engines, fifty_five_tensors_of_mixed_types) {
  const std::string file = folder_.write("model.safetensors", mixed_safetensors());
  EXPECT_EQ(compare(file), 55u);
  EXPECT_EQ(compare(file, {"--crop", "min"}), 55u);
}

}  // namespace
}  // namespace tmap::testing
