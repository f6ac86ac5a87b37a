// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>
#include <tmap/patch_rules.hpp>

#include "device/gpu_fixture.hpp"

// Makes the safe empty map that replaces refused patches, with the driver.

namespace tmap::testing {

/// Returns the address that the library's safe maps point to, read from the map of an empty tensor.
inline std::uint64_t library_page() {
  tensor_spec spec;
  spec.rank = 1;
  spec.box_dim[0] = 16;
  const result<map_template> base = make_template(spec, patch_extents(1));
  EXPECT_TRUE(base.has_value()) << to_string(base.error());
  const device_array<map_patch> patches(std::vector<map_patch>(1, map_patch{}));
  const device_array<tensor_map> slot(1);
  if (base) {
    const cuda::stream_ref stream{cudaStream_t{}};
    EXPECT_TRUE(encode_batch(*base, patch_array{patches.data()}, slot.data(), 1, {stream}).has_value());
  }
  return slot.download()[0].words[0];
}

inline tensor_map safe_map(const map_template& base) {
  const result<tensor_map> map = encode(empty_spec(base.spec, library_page()));
  EXPECT_TRUE(map.has_value()) << to_string(map.error());
  return map.value_or(tensor_map{});
}

}  // namespace tmap::testing
