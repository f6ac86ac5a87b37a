// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace tmap::support {

/// What `make` makes. Texts are the last thing a failing program asks for: out of memory they come out empty, and no
/// exception leaves the library.
template <class Make>
auto without_throwing(const Make& make) noexcept -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace tmap::support
