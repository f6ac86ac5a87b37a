// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/decode.hpp>

#include <optional>
#include <string>
#include <vector>

#include "apps/tmap/pad/outcome.hpp"
#include "apps/tmap/spec_input.hpp"

namespace tmap::tool {

/// Holds what there is to draw: a spec, the map that it makes or was read from, and sentences about
/// what is wrong.
struct shown_thing {
  std::optional<tensor_spec> spec;  ///< absent where bytes are no tensor map
  std::optional<tensor_map> map;    ///< absent where the spec breaks a rule
  bool is_tiled{true};
  std::vector<std::string> notes;     ///< values that were not given
  std::vector<std::string> warnings;  ///< rules that make a spec unusual
  std::vector<std::string> problems;  ///< rules that are broken, or why bytes are no map
};

/// Reads a spec of flags.
outcome<shown_thing> thing_of_words(const spec_words& words, const std::string& source);

/// Reads what an argument names: a JSON file of a spec, or one map in any form that `read_maps`
/// takes. Fails with a sentence that names the argument.
outcome<shown_thing> thing_of_argument(const std::string& argument);

}  // namespace tmap::tool
