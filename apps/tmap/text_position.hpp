// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace tmap::tool {

/// Names the place of a byte in a text: "line 3, column 14". Both count from 1.
inline std::string position_in(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", std::count(before.begin(), before.end(), '\n') + 1,
                     before.size() - line_begin + 1);
}

}  // namespace tmap::tool
