// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_map.hpp>

#include <string>
#include <vector>

#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

/// What a person may write for a map, for help texts.
inline constexpr const char* map_help =
    "256 hex digits (bytes in memory order), sixteen 0x words, a file of either or of raw bytes, or - for standard "
    "input";

/// The maps that an argument names: hex text, or a file (hex or raw bytes) holding one map or an
/// array of them. Fails with a sentence that names the argument.
outcome<std::vector<tensor_map>> read_maps(const std::string& argument);

/// The same where just one map makes sense.
outcome<tensor_map> read_one_map(const std::string& argument);

}  // namespace tmap::tool
