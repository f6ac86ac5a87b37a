// SPDX-License-Identifier: Apache-2.0
#include "apps/drawing/figure.hpp"

#include <sstream>

namespace tmap::drawing {

panel draw_legend(const std::vector<legend_entry>& entries) {
  constexpr double line_height = 19;
  constexpr std::size_t columns = 58;
  canvas picture{panel_width, 0};
  double y = 2;
  for (const legend_entry& entry : entries) {
    const area sample{1, y + 2, 22, 13};
    picture.box(sample, entry.css);
    if (entry.hatched != nullptr) picture.hatch(sample, entry.hatched);
    picture.box(sample, "frame");
    for (const std::string& line : wrapped(entry.meaning, columns)) {
      picture.text(32, y + 13, line);
      y += line_height - 3;
    }
    y += 5;
  }
  picture.set_height(y + 2);
  return {"Legend", picture};
}

std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
  std::vector<std::string> lines;
  std::istringstream words{text};
  for (std::string word; words >> word;) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > columns) {
      lines.push_back(word);
    } else {
      lines.back() += ' ' + word;
    }
  }
  return lines;
}

}  // namespace tmap::drawing
