// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/decode.hpp>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/spec_text.hpp"

// Maps that a driver wrote, in a text file. Lines that begin with '#' are comments; the first three
// name the GPU, the driver and the date. Each other line is one map: its kind (0 tiled, 1 im2col),
// the numbers of its spec, and its sixteen words.

namespace tmap::testing {

/// Holds one map and the spec that the driver made it from: `spec.tensor` alone if it is tiled.
struct golden_map {
  map_kind kind{};
  im2col_spec spec;
  tensor_map map{};
};

inline std::string to_line(const golden_map& golden) {
  std::ostringstream line;
  line << static_cast<std::uint32_t>(golden.kind) << ' ' << to_text(golden.spec) << std::hex;
  const char* separator = "";
  for (const std::uint64_t word : golden.map.words) line << std::exchange(separator, " ") << "0x" << word;
  return line.str();
}

/// Returns nothing if the line is not a map.
inline std::optional<golden_map> parse_golden_line(const std::string& text) {
  std::istringstream line{text};
  golden_map golden;
  std::int64_t number = 0;
  const auto next = [&](auto& value) {
    line >> number;
    value = static_cast<std::decay_t<decltype(value)>>(number);
  };
  next(golden.kind);
  for_each_im2col_number(golden.spec, next);
  for (std::uint64_t& word : golden.map.words) {
    std::string digits;
    line >> digits;
    word = std::strtoull(digits.c_str(), nullptr, 16);
  }
  return line.fail() ? std::nullopt : std::optional{golden};
}

/// Returns every map of a file; none if the file is missing or a line of it cannot be read.
inline std::vector<golden_map> read_golden_file(const std::string& path) {
  std::vector<golden_map> maps;
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const auto golden = parse_golden_line(line);
    if (!golden) return {};
    maps.push_back(*golden);
  }
  return maps;
}

}  // namespace tmap::testing
