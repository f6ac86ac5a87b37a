// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <tmap/decode.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "apps/run_tool.hpp"

// Makes maps for the tests of the tool, and the forms in which a user may pass them.

namespace tmap::testing {

inline tensor_map sample_map(std::uint64_t rows = 100) {
  tensor_spec spec;
  spec.global_address = 0x7f0000001000;
  spec.type = element_type::f16;
  spec.rank = 2;
  spec.global_dim[0] = 64;
  spec.global_dim[1] = rows;
  spec.global_stride_bytes[0] = 128;
  spec.box_dim[0] = 64;
  spec.box_dim[1] = 8;
  spec.swizzle = swizzle::bytes_128;
  return *encode_bits(spec);
}

inline std::string bytes_of(const tensor_map& map) {
  return {reinterpret_cast<const char*>(&map), sizeof map};
}

/// Returns 256 hexadecimal digits, with bytes in memory order.
inline std::string hex_of(const tensor_map& map) {
  std::string text;
  for (const char byte : bytes_of(map)) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

inline std::string words_of(const tensor_map& map) {
  std::string text;
  for (const std::uint64_t word : map.words) text += fmt::format("{:#x}, ", word);
  return text;
}

/// Makes a folder for one test and removes it afterwards.
class temporary_folder {
 public:
  temporary_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tmap-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() { std::filesystem::remove_all(path_); }

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream{path_ / name, std::ios::binary} << content;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

/// Returns whether standard error holds one line that names the program and contains `what`.
inline bool is_one_sentence_about(const std::string& text, const std::string& what) {
  const bool one_line = !text.empty() && text.find('\n') == text.size() - 1;
  return one_line && text.starts_with("tmap: ") && text.find(what) != std::string::npos;
}

/// Expects that the tool failed and printed only an error message.
inline void expect_trouble(const tool_result& run, const std::string& what) {
  EXPECT_EQ(run.exit_code, 2) << what;
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(is_one_sentence_about(run.err, what)) << run.err;
}

}  // namespace tmap::testing
