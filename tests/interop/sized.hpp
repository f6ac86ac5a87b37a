// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tmap::testing {

/// A struct of the C interface, all zeros but its size.
template <class Struct>
Struct sized() {
  Struct made{};
  made.struct_size = sizeof made;
  return made;
}

}  // namespace tmap::testing
