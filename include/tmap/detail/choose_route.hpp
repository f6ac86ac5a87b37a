// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/route.hpp>

namespace tmap {

TMAP_HOST_DEVICE constexpr route_choice choose_route(const tensor_layout&, const route_options&) {
  return {};
}

TMAP_HOST_DEVICE constexpr route_choice choose_route(const tensor_spec&, const route_options&) {
  return {};
}

}  // namespace tmap
