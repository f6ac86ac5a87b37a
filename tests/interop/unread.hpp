// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tmap::testing {

/// Returns a pointer that is checked, but never read.
template <class T>
T* unread(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace tmap::testing
