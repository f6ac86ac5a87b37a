// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode.hpp>
#include <tmap/make_template.hpp>
#include <tmap/map_patch.hpp>

#include <cstdint>
#include <vector>

#include "device/gpu_fixture.hpp"

// Provides the smallest tensors that a test can identify: lines of 32 elements, each of which is
// the tag of its line.

namespace tmap::testing {

inline constexpr std::uint32_t line_elements = 32;
inline constexpr std::uint64_t line_bytes = line_elements * sizeof(std::uint32_t);

/// Describes the tile that one map must show: its tag in the first `dim` elements, then the fill.
/// Lies in device memory.
struct line_use {
  std::uint32_t tag;
  std::uint32_t dim;
};

/// Returns a template whose maps change their address and dim. The box is a whole line.
inline result<map_template> line_template() {
  const std::uint64_t dims[] = {line_elements};
  const std::uint32_t box[] = {line_elements};
  return make_template(packed_spec(element_type::u32, 1 << 20, dims, box), patch_address | patch_dim(0));
}

inline map_patch line_patch(std::uint64_t address, std::uint32_t dim = line_elements) {
  map_patch patch{};
  patch.global_address = address;
  patch.global_dim[0] = dim;
  return patch;
}

/// Holds `count` lines in device memory.
class tagged_lines {
 public:
  explicit tagged_lines(std::uint32_t count) : count_(count), memory_(contents(count)) {}

  static constexpr std::uint32_t tag_of(std::uint32_t i) { return i + 1; }
  std::uint32_t size() const { return count_; }
  std::uint64_t address(std::uint32_t i) const { return memory_.address() + i * line_bytes; }
  const std::uint32_t* data() const { return memory_.data(); }

  /// Returns the driver's map of a line.
  tensor_map map(std::uint32_t i) const {
    const std::uint64_t dims[] = {line_elements};
    const std::uint32_t box[] = {line_elements};
    const result<tensor_map> made = encode(packed_spec(element_type::u32, address(i), dims, box));
    EXPECT_TRUE(made.has_value());
    return made.value_or(tensor_map{});
  }

  /// Returns patches of `count` lines, beginning with line `first`.
  std::vector<map_patch> patches(std::uint32_t first, std::uint32_t count) const {
    std::vector<map_patch> made;
    for (std::uint32_t i = first; i < first + count; ++i) made.push_back(line_patch(address(i)));
    return made;
  }
  static std::vector<line_use> uses(std::uint32_t first, std::uint32_t count) {
    std::vector<line_use> made;
    for (std::uint32_t i = first; i < first + count; ++i) made.push_back({tag_of(i), line_elements});
    return made;
  }

 private:
  static std::vector<std::uint32_t> contents(std::uint32_t count) {
    std::vector<std::uint32_t> elements(std::uint64_t{count} * line_elements);
    for (std::uint64_t i = 0; i < elements.size(); ++i) {
      elements[i] = tag_of(static_cast<std::uint32_t>(i / line_elements));
    }
    return elements;
  }

  std::uint32_t count_;
  device_array<std::uint32_t> memory_;
};

}  // namespace tmap::testing
