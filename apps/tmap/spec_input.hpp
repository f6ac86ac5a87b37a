// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/device_limits.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/tmap/any_spec.hpp"
#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

/// A spec as a person gave it, by flags or as JSON: words not yet understood, numbers perhaps left
/// out. A member that was left out is empty.
struct spec_words {
  std::string type;
  std::vector<std::uint64_t> dims;
  std::vector<std::uint64_t> strides;
  std::vector<std::uint32_t> box;
  std::vector<std::uint32_t> element_strides;
  std::vector<std::int32_t> lower;  ///< this and the next three: im2col only
  std::vector<std::int32_t> upper;
  std::optional<std::uint32_t> channels;
  std::optional<std::uint32_t> pixels;
  std::string interleave{"none"};
  std::string swizzle{"none"};
  std::string l2{"none"};
  std::string fill{"zero"};
  std::string address;
  std::string compute_capability;  ///< of JSON that states it
  bool is_kind_im2col{};           ///< stated by JSON
  bool is_json{};                  ///< sentences name the keys of JSON, not flags

  bool is_im2col() const { return is_kind_im2col || !lower.empty() || !upper.empty() || channels || pixels; }
};

/// A spec, and a note for each value that was not given.
struct spec_answer : any_spec {
  std::vector<std::string> notes;
};

/// Reads a JSON object with the names of `inspect --json`, or the output of `explain --json`. Fails
/// with a sentence that names `source`, the key, its line and column.
outcome<spec_words> read_spec_json(const std::string& text, const std::string& source);

/// Does the same for a value that was parsed already, without a position.
outcome<spec_words> read_spec_json(const nlohmann::ordered_json& object, const std::string& source);

/// Understands the words. It derives packed strides, element strides of 1 and an address if none is
/// given. It does not refuse numbers that break a rule: explaining them is the point. Fails with a
/// sentence that begins with the flag, without its dashes, or with the key in quotes.
outcome<spec_answer> understand(const spec_words& words);

/// Reads "9.0", "9", "90", "sm_90a" and the like. Fails below 9.0, where there are no tensor maps.
outcome<device_limits> read_compute_capability(const std::string& text);

}  // namespace tmap::tool
