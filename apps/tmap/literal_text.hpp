// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tmap::tool {

/// Returns the bytes of all literals b'...' of Python in a text, one after the other. Returns
/// nothing if there is none.
std::optional<std::string> bytes_of_literals(std::string_view text);

}  // namespace tmap::tool
