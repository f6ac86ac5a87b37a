// SPDX-License-Identifier: Apache-2.0
#include "apps/demo/pictures/write_pictures.hpp"

#include "apps/demo/pictures/sheet.hpp"
#include "apps/tmap/pad/output_file.hpp"

namespace tmap::demo {

tool::outcome<std::size_t> write_pictures(const std::filesystem::path& folder) {
  if (const auto ready = tool::prepare_folder(folder); !ready) return tool::refusal{ready.error()};
  std::size_t count = 0;
  for (const auto draw : {draw_boxes, draw_walks, draw_swizzles, draw_strides, draw_interleaves, draw_maps}) {
    for (const drawn& scene : draw()) {
      const auto written = tool::write_file(folder / (scene.file + ".png"), {scene.image.png()});
      if (!written) return tool::refusal{written.error()};
      ++count;
    }
  }
  return count;
}

}  // namespace tmap::demo
