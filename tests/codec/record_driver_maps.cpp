// SPDX-License-Identifier: Apache-2.0
// Writes tests/golden/driver_maps.txt to standard output: the maps that this machine's driver makes
// of the structured specs. Leaves out each spec that the driver refuses and prints it on standard
// error. Returns 1 if there was one, and 2 without a driver.

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <tmap/encode.hpp>

#include <cstdio>

#include "support/golden_file.hpp"
#include "support/gpu_origin.hpp"
#include "support/structured_specs.hpp"

namespace {

using namespace tmap;

void print_header() {
  fmt::print("{}", testing::gpu_origin());
  fmt::print(
      "# kind type rank address dim[5] stride[4] box[5] element_stride[5]\n"
      "# interleave swizzle l2_promotion oob_fill\n"
      "# lower_corner[3] upper_corner[3] channels_per_pixel pixels_per_column word[16]\n");
}

/// Returns the number of specs that the driver refused.
template <class Spec>
int record(map_kind kind, const std::vector<Spec>& specs) {
  int refused = 0;
  for (const Spec& spec : specs) {
    testing::golden_map golden;
    golden.kind = kind;
    if constexpr (std::is_same_v<Spec, im2col_spec>) {
      golden.spec = spec;
    } else {
      golden.spec.tensor = spec;
    }
    if (const auto map = encode(spec)) {
      golden.map = *map;
      fmt::print("{}\n", testing::to_line(golden));
    } else {
      ++refused;
      fmt::print(stderr, "{}: {}\n", to_string(map.error()), testing::to_text(spec));
    }
  }
  return refused;
}

}  // namespace

int main() {
  if (const auto limits = query_device_limits(); !limits) {
    fmt::print(stderr, "record_driver_maps: {}\n", to_string(limits.error()));
    return 2;
  }
  print_header();
  const testing::structured_specs specs;
  const int refused = record(map_kind::tiled, specs.tiled()) + record(map_kind::im2col, specs.im2col());
  return refused == 0 ? 0 : 1;
}
