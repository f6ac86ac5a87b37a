// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_fields.hpp>

#include "apps/drawing/figure.hpp"

namespace tmap::drawing {

/// Returns the hue, 0 to 7, that stands for fields of this kind in every drawing.
int hue_of(const map_field& field);

/// Returns the word and the bits of a field: "1: 7-10, 16" or "1: 32-63 + 3: 32-35".
std::string place_text(const map_field& field);

/// Draws the 128 bytes of a map, coloured by field, and a list of its fields with their bits.
figure draw_map(const tensor_map& map);

}  // namespace tmap::drawing
