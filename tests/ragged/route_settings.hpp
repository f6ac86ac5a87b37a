// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared parts of the tests of moving operations: the routes that they run with, and memory to work
// in.

#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "device/gpu_fixture.hpp"

namespace tmap::ragged::testing {

/// States the routes that an operation may take. Each test runs with every setting.
struct route_setting {
  const char* name;
  route_policy policy;
  route_set allowed;
};
inline constexpr route_setting settings[] = {
    {"mixed", route_policy::enable, all_routes},
    {"tensor maps", route_policy::force, route_bit(route::tensor_map)},
    {"bulk", route_policy::force, route_bit(route::bulk)},
    {"ldgsts", route_policy::enable, route_bit(route::ldgsts)},
    {"plain", route_policy::disable, {}},
};

inline run run_of(const route_setting& setting, const on_stream& where) {
  return {.where = where, .choices = {setting.policy, setting.allowed}};
}

inline std::string name_of(const ::testing::TestParamInfo<route_setting>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

inline tmap::testing::device_array<unsigned char> workspace_for(std::uint64_t count, std::uint32_t rank) {
  return tmap::testing::device_array<unsigned char>(workspace_bytes(count, rank).value());
}

inline workspace all_of(const tmap::testing::device_array<unsigned char>& memory) {
  return {memory.data(), memory.bytes()};
}

}  // namespace tmap::ragged::testing
