// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tmap.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/interop/objects.hpp"
#include "service/service_fixture.hpp"

namespace tmap::testing {

/// Makes services over the fake machine and returns handles. Tests destroy or release what they
/// make.
class c_service_fixture : public service_fixture {
 protected:
  ~c_service_fixture() override { EXPECT_EQ(tmap_template_destroy(c_base), TMAP_OK); }

  tmap_service make_c(std::uint64_t capacity = 256) {
    tmap_service service{};
    EXPECT_TRUE(
        interop::hand_out(interop::services(), std::make_shared<map_service>(make(capacity)), &service).is_ok());
    return service;
  }

  static tmap_template make_template(const map_template& base) {
    tmap_template made{};
    EXPECT_TRUE(interop::hand_out(interop::templates(), std::make_shared<const map_template>(base), &made).is_ok());
    return made;
  }

  static tmap_patch_source source_of(const tensor_list& tensors) {
    tmap_patch_source source{};
    source.struct_size = sizeof source;
    source.kind = TMAP_SOURCE_PATCHES;
    source.of.patches = reinterpret_cast<const tmap_map_patch*>(tensors.patches.data());
    return source;
  }

  static tmap_batch_info info_of(tmap_batch batch) {
    tmap_batch_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(tmap_batch_query(batch, &info), TMAP_OK);
    return info;
  }

  static std::string statistics_of(tmap_service service) {
    char text[1024] = {};
    EXPECT_EQ(tmap_service_statistics(service, text, sizeof text, nullptr), TMAP_OK);
    return text;
  }

  /// Counts the maps of the batch that differ from what their patches ask for.
  std::uint64_t wrong_maps(tmap_batch batch, const map_template& of, const std::vector<map_patch>& patches) const {
    const tmap_batch_info info = info_of(batch);
    if (info.ref.count != patches.size()) return ~std::uint64_t{0};
    std::uint64_t wrong = 0;
    for (std::uint32_t i = 0; i < info.ref.count; ++i) {
      const std::uint32_t slot = info.ref.indices == nullptr ? i : info.ref.indices[i];
      const encoded_map expected = encode_one(of, patches[i], {});
      const bool same = std::memcmp(&info.ref.slots[slot], &expected.map, sizeof expected.map) == 0;
      wrong += same && info.ref.statuses[slot] == expected.status.bits ? 0 : 1;
    }
    return wrong;
  }

  tmap_template c_base = make_template(base);
};

}  // namespace tmap::testing
