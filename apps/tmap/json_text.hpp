// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

/// Returns whether a text begins as a JSON object does, and not as a list of numbers in braces.
bool looks_like_json(const std::string& text);

/// Reads the JSON values of a text, one or several after each other. Fails with a sentence that
/// names `source`, line and column.
outcome<std::vector<nlohmann::ordered_json>> read_json(const std::string& text, const std::string& source);

}  // namespace tmap::tool
