// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

/// The bytes that a text spells. `reading` states how it was read where there was a choice, else it
/// is empty.
struct spelt_bytes {
  std::string bytes;
  std::string reading;
};

/// Reads bytes as people and debuggers write them: hex digits with any separators, words of 32 or
/// 64 bits, dumps of xxd, hexdump -C and gdb (x/16gx, x/32wx, x/128xb, p/x), and Python's b'...'.
/// Fails with the line and column of the first word that is not one of these.
outcome<spelt_bytes> bytes_of_text(std::string_view text);

}  // namespace tmap::tool
