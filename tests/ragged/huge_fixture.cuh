// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs one call on huge tensors by every route: writes both memories, runs the operation, and
// checks every element of both.

#include <tmap/ragged.hpp>

#include <string>
#include <tuple>
#include <vector>

#include "ragged/huge_batch.hpp"
#include "ragged/huge_values.cuh"

namespace tmap::ragged::testing {

using namespace tmap::testing;

struct huge_setting {
  const char* name;
  route way;  ///< for a long row
  route_policy policy;
  route_set allowed;
  std::uint64_t column_step;  ///< the rows' lengths are multiples of it
  std::uint64_t odd[2];       ///< the elements by which the tensors of a side, and their pitches, miss the alignment

  route_options routes() const { return {policy, allowed}; }
};
inline constexpr huge_setting huge_settings[] = {
    {"chosen", route::bulk, route_policy::enable, all_routes, 1, {0, 0}},
    {"plain", route::plain, route_policy::disable, {}, 1, {1, 3}},
    {"ldgsts", route::ldgsts, route_policy::disable, route_bit(route::ldgsts), 16, {0, 0}},
    {"tensor_maps", route::tensor_map, route_policy::force, route_bit(route::tensor_map), 16, {0, 0}},
};

enum class huge_kind {
  one,    ///< a row of 2^31 - 1 elements, the most that a map has
  batch,  ///< tensors across 2^31 and 2^32 bytes, of one row and of many
  large,  ///< a row of more than 2^31 elements and more than 2^32 bytes
  wide,   ///< as many elements, in rows that maps support
};
inline constexpr const char* huge_kinds[] = {"one", "batch", "large", "wide"};

using huge_param = std::tuple<huge_setting, huge_kind>;

/// Returns the parameters of these kinds that a setting's routes support.
inline std::vector<huge_param> huge_params(const std::vector<huge_kind>& kinds) {
  std::vector<huge_param> all;
  for (const huge_setting& setting : huge_settings) {
    for (const huge_kind kind : kinds) {
      if (setting.way != route::tensor_map || kind != huge_kind::large) all.emplace_back(setting, kind);
    }
  }
  return all;
}

inline std::string name_huge(const ::testing::TestParamInfo<huge_param>& info) {
  const auto kind = static_cast<std::uint32_t>(std::get<1>(info.param));
  return std::string(std::get<0>(info.param).name) + "_" + huge_kinds[kind];
}

struct huge_sides {
  huge_side source;
  huge_side destination;
};

/// Holds the arguments of an operation.
struct huge_call {
  tensor_batch source;
  tensor_batch destination;
  std::uint64_t from;  ///< addresses of both memories
  std::uint64_t to;
  run with;
};

inline const cuda::stream_ref huge_stream{cudaStream_t{}};
inline constexpr const char* no_room = "not enough device memory is free";

class ragged_huge : public gpu_test, public ::testing::WithParamInterface<huge_param> {
 protected:
  static const huge_setting& setting() { return std::get<0>(GetParam()); }
  static huge_kind kind() { return std::get<1>(GetParam()); }

  static std::vector<matrix_shape> shapes(std::uint64_t element_bytes) {
    constexpr std::uint64_t two_31 = std::uint64_t{1} << 31;
    const std::uint64_t middle = two_31 / element_bytes;
    const bool is_byte = element_bytes == 1;
    std::vector<matrix_shape> all{{two_31 - 1, 1}};
    if (kind() == huge_kind::large) all = {{(is_byte ? 2 * two_31 : two_31) + 37, 1}};
    if (kind() == huge_kind::wide) all = {{(1 << 16) + 16, is_byte ? (1 << 16) + 16u : (1 << 15) + 16u}};
    if (kind() == huge_kind::batch) {
      // One row, then a row below 2^31 bytes, one across that boundary, many rows, one row across
      // 2^32 bytes, and short rows after it.
      all = {{middle - 2003, 1},  {4099, 1},    {1500, middle / 2 / 1520}, {middle / 2 - (16 << 20) - 7, 1},
             {(32 << 20) + 5, 1}, {33, 1000003}};
    }
    for (matrix_shape& shape : all) shape.columns -= shape.columns % setting().column_step;
    return all;
  }

  static huge_sides sides(std::uint64_t source_bytes) {
    const std::vector<matrix_shape> all = shapes(source_bytes);
    const huge_sides both{lay_out_huge(all, setting().odd[0]), lay_out_huge(all, setting().odd[1])};
    if (kind() != huge_kind::one) {
      EXPECT_TRUE(crosses(both.source, source_bytes, std::uint64_t{1} << 31));
      EXPECT_TRUE(crosses(both.source, source_bytes, std::uint64_t{1} << 32));
      EXPECT_TRUE(crosses(both.destination, source_bytes, std::uint64_t{1} << 32));
    }
    return both;
  }

  /// Writes `given` and `start`, calls the operation, and expects `wanted` in the destination and
  /// an unchanged source.
  template <class In, class Out, class Given, class Start, class Wanted, class Call>
  static void expect_result(const huge_sides& both, const Given& given, const Start& start, const Wanted& wanted,
                            const Call& operation) {
    const device_array<In> from(both.source.elements);
    const device_array<Out> to(both.destination.elements);
    write_values(from, both.source, given);
    write_values(to, both.destination, start);
    described_arrays arrays(array_side::device);
    huge_call call{.source = {}, .destination = {}, .from = from.address(), .to = to.address(), .with = {on_host{}}};
    call.source = describe(both.source, from.address(), sizeof(In), arrays);
    call.destination = describe(both.destination, to.address(), sizeof(Out), arrays);
    const device_array<unsigned char> scratch(workspace_bytes(call.source.count, call.source.rank).value());
    call.with.where = on_stream{huge_stream, {scratch.data(), scratch.bytes()}};
    const device_array<batch_header> header(1);
    call.with.choices = {setting().policy, setting().allowed};
    call.with.header = header.data();
    TMAP_ASSERT_OK(operation(call));
    EXPECT_EQ(header.download().front().bad_count, 0u);
    expect_values(to, both.destination, wanted);
    expect_values(from, both.source, given);
  }

  /// Expects that the source's first tensor takes the route that the setting tests.
  static void expect_way(const huge_sides& both, std::uint32_t source_bytes) {
    const tensor_layout first = layout_of(both.source.tensors[0], 0, source_bytes);
    EXPECT_EQ(choose_route(first, setting().routes()).way, setting().way);
  }

  static bool fits(const huge_sides& both, std::uint64_t source_bytes, std::uint64_t destination_bytes) {
    return has_room(both.source.elements * source_bytes + both.destination.elements * destination_bytes);
  }
};

}  // namespace tmap::ragged::testing
