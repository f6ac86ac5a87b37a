// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/tmap/any_spec.hpp"

namespace tmap::tool {

/// A legal spec near another one, and what differs: "global_stride_bytes[0]: 8200 -> 8208".
struct nearest_spec {
  any_spec spec;
  std::vector<std::string> changes;
  bool is_legal{};  ///< false where a rule is broken that no number of the spec can mend
};

/// Mends one broken rule after the other by its nearest legal value. Packed strides stay packed.
/// The types, addresses and ranks that people must choose themselves stay as they are.
nearest_spec find_nearest(const any_spec& given, const device_limits& limits);

}  // namespace tmap::tool
