// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/drawing/canvas.hpp"

namespace tmap::drawing {

/// Width of a panel in pixels. A phone shows it without zooming.
inline constexpr double panel_width = 420;

/// Holds a part of a figure, with a heading of its own.
struct panel {
  std::string heading;
  canvas picture;
};

/// Holds a drawing with its words: a title, sentences that explain it, panels side by side.
struct figure {
  std::string id;  ///< a word for links and tests
  std::string title;
  std::vector<std::string> sentences;
  std::vector<panel> panels;
};

/// Holds one line of a legend. `hatched` is the class of stripes over the sample, or null.
struct legend_entry {
  const char* css;
  const char* hatched;
  std::string meaning;
};

/// Draws a sample and the meaning of each entry.
panel draw_legend(const std::vector<legend_entry>& entries);

/// Splits a text into lines of at most `columns` characters, between words.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns);

}  // namespace tmap::drawing
