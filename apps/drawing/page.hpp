// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/drawing/figure.hpp"

namespace tmap::drawing {

/// Returns the colours and letters of all drawings, light and dark.
std::string_view style_sheet();

/// Returns a figure as it stands in a page.
std::string html_of(const figure& drawn);

/// Returns a whole page around `body`. It loads nothing, runs no script, and its policy forbids
/// both. `more_style` follows the style sheet of the drawings.
std::string html_page(std::string_view title, std::string_view body, std::string_view more_style = {});

/// Returns an SVG file with the figures one below the other.
std::string svg_file(const std::vector<figure>& figures);

}  // namespace tmap::drawing
