// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>

#include <optional>

#include "apps/drawing/figure.hpp"
#include "apps/drawing/loaded_tile.hpp"

namespace tmap::drawing {

/// Names what a drawing of a tensor shows in addition to the tensor.
struct tensor_marks {
  std::optional<coordinates> box_at;  ///< a box to mark
  bool is_refused{};                  ///< no map describes the tensor: it is drawn in red
  double width{panel_width};          ///< of the drawing
  double height{250};
};

/// Draws a tensor and its boxes to scale: the two innermost axes, with the padding of its rows and
/// the parts of boxes that lie outside. Any spec is drawn, also one that breaks rules.
canvas draw_tensor_to_scale(const tensor_spec& spec, const tensor_marks& marks);

/// Draws the same as a figure, with a legend and sentences.
figure draw_tensor(const tensor_spec& spec, const tensor_marks& marks);

/// Returns "f16 [64 x 100]", dimensions innermost first.
std::string short_name(const tensor_spec& spec);

/// Returns "3 x 13 boxes of 64 x 8; along dimension 1 the last one has 4 of 8 elements inside".
std::string box_sentence(const tensor_spec& spec);

}  // namespace tmap::drawing
