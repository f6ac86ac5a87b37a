// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <string>

namespace tmap::support {

/// What `make` makes. Texts are the last thing a failing program asks for: out of memory they come
/// out empty, and no exception leaves the library.
template <class Make>
auto without_throwing(const Make& make) noexcept -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception&) {
    return {};
  }
}

/// A text that was made `without_throwing`, for a function that throws: it is empty only where
/// memory ran out.
inline std::string or_throw(std::string text) {
  if (text.empty()) throw std::bad_alloc{};
  return text;
}

}  // namespace tmap::support
