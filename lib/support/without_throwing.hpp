// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <string>

namespace tmap::support {

/// Returns the result of `make`, or an empty one if it throws. Texts are the last thing that a
/// failing program asks for: without memory they are empty, and no exception leaves the library.
template <class Make>
auto without_throwing(const Make& make) noexcept -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception&) {
    return {};
  }
}

/// Throws `std::bad_alloc` if a text that was made `without_throwing` is empty, that is, if memory
/// ran out.
inline std::string or_throw(std::string text) {
  if (text.empty()) throw std::bad_alloc{};
  return text;
}

}  // namespace tmap::support
