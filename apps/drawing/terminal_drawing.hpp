// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include <string>

#include "apps/drawing/tensor_figure.hpp"

namespace tmap::drawing {

// The same drawings as text of a terminal, with or without colour. Each ends with a line break.

/// Prints the bytes of a map next to its fields with their bits.
std::string map_as_text(const tensor_map& map, bool colour);

/// Prints the boxes of a tensor, one sign a box.
std::string tensor_as_text(const tensor_spec& spec, const tensor_marks& marks, bool colour);

/// Prints what a load leaves in shared memory, and the bank conflicts of reads of it. Fails as
/// `load_tile` does.
[[nodiscard]] result<std::string> tile_as_text(const tensor_spec& spec, const coordinates& at, bool colour);

}  // namespace tmap::drawing
