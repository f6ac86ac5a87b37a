// SPDX-License-Identifier: Apache-2.0
// Draws the pictures that `make demo` pads: what boxes, swizzles, strides and interleaves look
// like.
#include <fmt/format.h>

#include <filesystem>

#include "apps/demo_pictures/sheet.hpp"
#include "apps/tmap/pad/output_file.hpp"

namespace {

using namespace tmap;

tool::outcome<std::size_t> write_all(const std::filesystem::path& folder) {
  if (const auto ready = tool::prepare_folder(folder); !ready) return tool::refusal{ready.error()};
  std::size_t count = 0;
  for (const auto draw : {demo::draw_boxes, demo::draw_walks, demo::draw_swizzles, demo::draw_strides,
                          demo::draw_interleaves, demo::draw_maps}) {
    for (const demo::drawn& scene : draw()) {
      const auto written = tool::write_file(folder / (scene.file + ".png"), {scene.image.png()});
      if (!written) return tool::refusal{written.error()};
      ++count;
    }
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: tmap_demo_pictures FOLDER\n");
    return 2;
  }
  const auto written = write_all(argv[1]);
  if (!written) {
    fmt::print(stderr, "tmap_demo_pictures: {}\n", written.error());
    return 1;
  }
  fmt::print("{} pictures in {}\n", *written, argv[1]);
  return 0;
}
