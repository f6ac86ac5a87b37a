// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "lib/interop/call.hpp"
#include "lib/support/without_throwing.hpp"

namespace tmap::interop {

/// A text to a buffer of C, as tmap.h says for all of them.
inline answer write_text(std::string_view text, char* buffer, std::size_t capacity, std::size_t* length) {
  if (length != nullptr) *length = text.size();
  if (capacity == 0) return {};
  const std::size_t room = capacity - 1;
  const std::size_t written = text.size() < room ? text.size() : room;
  std::memcpy(buffer, text.data(), written);
  buffer[written] = '\0';
  if (written == text.size()) return {};
  return {TMAP_BUFFER_TOO_SMALL, error{.found = capacity,
                                       .allowed = text.size() + 1,
                                       .argument = "capacity",
                                       .reason = "is {found}; it must be at least {allowed} for the whole text"}};
}

/// The same of a text that the library made.
inline answer write_made_text(std::string text, char* buffer, std::size_t capacity, std::size_t* length) {
  return write_text(support::or_throw(std::move(text)), buffer, capacity, length);
}

/// Checks of the three arguments of every text.
inline void check_text(arguments& given, const char* buffer, std::size_t capacity, const std::size_t* length) {
  given.buffer(buffer, capacity, "text");
  given.optional_pointer(length, "length");
}

}  // namespace tmap::interop
