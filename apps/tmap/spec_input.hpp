// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/device_limits.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

/// A spec as a person gave it, by flags or as JSON: words not yet understood, numbers perhaps left
/// out. What is left out is not there, or empty.
struct spec_words {
  std::string type;
  std::vector<std::uint64_t> dims;
  std::vector<std::uint64_t> strides;
  std::vector<std::uint32_t> box;
  std::vector<std::uint32_t> element_strides;
  std::string interleave{"none"};
  std::string swizzle{"none"};
  std::string l2{"none"};
  std::string fill{"zero"};
  std::string address;
};

/// A spec, and a note for each value that was not given.
struct spec_answer {
  tensor_spec spec;
  std::vector<std::string> notes;
};

/// Reads a JSON object with the names of `inspect --json`. Fails with a sentence that names
/// `source` and the key.
outcome<spec_words> read_spec_json(const std::string& text, const std::string& source);

/// Understands the words, and derives packed strides, element strides 1 and an address where none
/// is given. Numbers that break a rule are not refused here: explaining them is the point. Fails
/// with a sentence that names the word.
outcome<spec_answer> understand(const spec_words& words);

/// "9.0", "90" or "10.0". Fails below 9.0, where there are no tensor maps.
outcome<device_limits> read_compute_capability(const std::string& text);

}  // namespace tmap::tool
