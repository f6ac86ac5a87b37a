// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/element_type.hpp>
#include <tmap/reduction.hpp>

#include <cstddef>
#include <cstdint>

namespace tmap::simulator {

/// memory[i] = memory[i] op tile[i] for `count` bytes, a multiple of the element size.
using reduction_kernel = void (*)(std::byte* memory, const std::byte* tile, std::uint64_t count);

/// Null for a pair the copy engine does not have.
reduction_kernel kernel_for(reduction operation, element_type type);

}  // namespace tmap::simulator
