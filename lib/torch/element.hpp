// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/torch/tensor_view.hpp"

#include <array>

namespace tmap::pytorch {

/// Returns the bytes of an element of this type and value, lowest first, as `element_bytes` in
/// python/tmap/_numbers.py does. Refuses a value that the type does not have.
std::array<unsigned char, 16> element_bytes(double value, std::int32_t type, const char* name);

}  // namespace tmap::pytorch
