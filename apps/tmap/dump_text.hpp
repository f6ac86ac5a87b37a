// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tmap::tool {

/// Returns the bytes of a dump of xxd or `hexdump -C`: an offset before each line, bytes in memory
/// order. Returns nothing if one line belongs to no such dump, or none has bytes.
std::optional<std::string> bytes_of_dump(std::string_view text);

}  // namespace tmap::tool
