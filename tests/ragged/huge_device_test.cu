// SPDX-License-Identifier: Apache-2.0
// Tensors of 2^31 - 1 elements, and batches of more than 2^32 bytes with tensors across 2^31 and 2^32, by every route.
// Every element of both sides is looked at, also those between tensors. At most 22 GiB of device memory.
#include <tmap/ragged.hpp>

#include <string>
#include <tuple>

#include "ragged/huge_batch.hpp"
#include "ragged/huge_values.cuh"

namespace tmap::ragged::testing {
namespace {

using namespace tmap::testing;

struct huge_setting {
  const char* name;
  route way;  ///< of a long row
  route_policy policy;
  route_set allowed;
  std::uint64_t column_step;  ///< rows are multiples of it
  std::uint64_t odd[2];       ///< elements by which the tensors of a side, and their pitches, miss alignment

  route_options routes() const { return {policy, allowed}; }
};
constexpr huge_setting huge_settings[] = {
    {"chosen", route::bulk, route_policy::enable, all_routes, 1, {0, 0}},
    {"plain", route::plain, route_policy::disable, 0, 1, {1, 3}},
    {"ldgsts", route::ldgsts, route_policy::disable, route_bit(route::ldgsts), 16, {0, 0}},
    {"tensor_maps", route::tensor_map, route_policy::force, route_bit(route::tensor_map), 16, {0, 0}},
};

struct huge_sides {
  huge_side source;
  huge_side destination;
};

class ragged_huge : public gpu_test, public ::testing::WithParamInterface<std::tuple<huge_setting, bool>> {
 protected:
  static const huge_setting& setting() { return std::get<0>(GetParam()); }
  static bool is_batch() { return std::get<1>(GetParam()); }

  /// One row, or a row below 2^31 bytes, one across, many rows, one row across 2^32 bytes, and short rows behind it.
  static std::vector<matrix_shape> shapes(std::uint64_t element_bytes) {
    const std::uint64_t middle = (std::uint64_t{1} << 31) / element_bytes;
    std::vector<matrix_shape> all{{(std::uint64_t{1} << 31) - 1, 1}};
    if (is_batch()) {
      all = {{middle - 2003, 1},  {4099, 1},    {1500, middle / 2 / 1520}, {middle / 2 - (16 << 20) - 7, 1},
             {(32 << 20) + 5, 1}, {33, 1000003}};
    }
    for (matrix_shape& shape : all) shape.columns -= shape.columns % setting().column_step;
    return all;
  }

  static huge_sides sides(std::uint64_t source_bytes) {
    const std::vector<matrix_shape> all = shapes(source_bytes);
    const huge_sides both{lay_out_huge(all, setting().odd[0]), lay_out_huge(all, setting().odd[1])};
    if (is_batch()) {
      EXPECT_TRUE(crosses(both.source, source_bytes, std::uint64_t{1} << 31));
      EXPECT_TRUE(crosses(both.source, source_bytes, std::uint64_t{1} << 32));
      EXPECT_TRUE(crosses(both.destination, source_bytes, std::uint64_t{1} << 32));
    }
    return both;
  }

  /// Writes `given` and `start`, calls the operation, and expects `wanted` in the destination and nothing new in the
  /// source.
  template <class In, class Out, class Given, class Start, class Wanted, class Call>
  void expect_result(const huge_sides& both, const Given& given, const Start& start, const Wanted& wanted,
                     const Call& call) {
    const device_array<In> from(both.source.elements);
    const device_array<Out> to(both.destination.elements);
    write_values(from, both.source, given);
    write_values(to, both.destination, start);
    described_arrays arrays(array_side::device);
    const tensor_batch source = describe(both.source, setting().odd[0], from.address(), sizeof(In), arrays);
    const tensor_batch destination = describe(both.destination, setting().odd[1], to.address(), sizeof(Out), arrays);
    const device_array<unsigned char> scratch(workspace_bytes(source.count, source.rank).value());
    const device_array<batch_header> header(1);
    EXPECT_EQ(choose_route(layout_of(both.source.tensors[0], from.address(), sizeof(In)), setting().routes()).way,
              setting().way);
    options with;
    with.policy = setting().policy;
    with.allowed = setting().allowed;
    with.header = header.data();
    TMAP_ASSERT_OK(call(source, destination, workspace{scratch.data(), scratch.bytes()}, with));
    EXPECT_EQ(header.download().front().bad_count, 0u);
    expect_values(to, both.destination, wanted);
    expect_values(from, both.source, given);
  }

  static bool fits(const huge_sides& both, std::uint64_t source_bytes, std::uint64_t destination_bytes) {
    return has_room(both.source.elements * source_bytes + both.destination.elements * destination_bytes);
  }

  void expect_reduced(row_reduction reduction);
};

const cuda::stream_ref huge_stream{cudaStream_t{}};
constexpr const char* no_room = "not enough device memory is free";

/// What the tests look with sees one byte behind 2^32.
TEST_F(gpu_test, one_wrong_byte_behind_2_32) {
  constexpr std::uint64_t place = (std::uint64_t{1} << 32) + 7;
  if (!has_room(place + 100)) GTEST_SKIP() << no_room;
  const device_array<std::uint8_t> memory(place + 100);
  huge_side side{};
  side.elements = memory.size();
  expect_values(memory, side, nothing_yet<std::uint8_t>{});
  TMAP_ASSERT_CUDA(cudaMemset(memory.data() + place, 0, 1));
  const wrong_elements wrong = find_wrong(memory, side, nothing_yet<std::uint8_t>{});
  EXPECT_EQ(wrong.count, 1u);
  EXPECT_EQ(wrong.first, place);
}

TEST_P(ragged_huge, copy) {
  const huge_sides both = sides(1);
  if (!fits(both, 1, 1)) GTEST_SKIP() << no_room;
  expect_result<std::uint8_t, std::uint8_t>(
      both, noise_bytes{}, nothing_yet<std::uint8_t>{}, copied_bytes{both.source},
      [](const auto& from, const auto& to, workspace scratch, const options& with) {
        return copy_async(from, to, scratch, huge_stream, with);
      });
}

TEST_P(ragged_huge, cast) {
  const huge_sides both = sides(1);
  if (!fits(both, 1, 4)) GTEST_SKIP() << no_room;
  const cast_values values{value_type::u8, value_type::f32, 0.5f, 3, nullptr, nullptr};
  expect_result<std::uint8_t, std::uint32_t>(
      both, noise_bytes{}, nothing_yet<std::uint32_t>{}, bytes_as_floats{both.source, values.scale, values.shift},
      [&](const auto& from, const auto& to, workspace scratch, const options& with) {
        return cast_async(from, to, values, scratch, huge_stream, with);
      });
}

TEST_P(ragged_huge, saxpy) {
  const huge_sides both = sides(4);
  if (!fits(both, 4, 4)) GTEST_SKIP() << no_room;
  constexpr float a = 1.7f;
  expect_result<std::uint32_t, std::uint32_t>(
      both, noise_floats{}, first_summands{}, float_sums{both.source, a},
      [&](const auto& from, const auto& to, workspace scratch, const options& with) {
        return saxpy_async(a, from, to, scratch, huge_stream, with);
      });
}

TEST_P(ragged_huge, max_pool_1d) {
  const huge_sides both = sides(4);
  if (!fits(both, 4, 4)) GTEST_SKIP() << no_room;
  constexpr std::uint32_t radius = 15;
  expect_result<std::uint32_t, std::uint32_t>(
      both, noise_floats{}, nothing_yet<std::uint32_t>{}, window_maxima{both.source, radius},
      [&](const auto& from, const auto& to, workspace scratch, const options& with) {
        return max_pool_1d_async(from, to, radius, scratch, huge_stream, with);
      });
}

void ragged_huge::expect_reduced(row_reduction reduction) {
  std::vector<matrix_shape> rows = shapes(2);
  huge_sides both{lay_out_huge(rows, setting().odd[0]), {}};
  for (matrix_shape& shape : rows) shape.columns = 1;
  both.destination = lay_out_huge(rows, setting().odd[1]);
  if (!fits(both, 2, 4)) GTEST_SKIP() << no_room;
  row_sums sums{};
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < both.source.count; ++i) {
    sums.first[i] = all;
    all += both.source.tensors[i].rows;
  }
  const device_array<std::uint32_t> memory(std::vector<std::uint32_t>(all, 0));
  sums.sums = memory.data();
  sum_kernel<<<huge_blocks, huge_threads>>>(both.source, sums);
  TMAP_ASSERT_CUDA(cudaGetLastError());
  expect_result<std::uint16_t, std::uint32_t>(
      both, sparse_halves{}, nothing_yet<std::uint32_t>{}, reduced_rows{sums, reduction == row_reduction::sum},
      [&](const auto& from, const auto& to, workspace scratch, const options& with) {
        return reduce_rows_async(from, value_type::bf16, reduction, to, scratch, huge_stream, with);
      });
}

TEST_P(ragged_huge, row_sums) {
  expect_reduced(row_reduction::sum);
}

TEST_P(ragged_huge, row_maxima) {
  expect_reduced(row_reduction::max);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<huge_setting, bool>>& info) {
  return std::string(std::get<0>(info.param).name) + (std::get<1>(info.param) ? "_batch" : "_one");
}

INSTANTIATE_TEST_SUITE_P(routes, ragged_huge, ::testing::Combine(::testing::ValuesIn(huge_settings), ::testing::Bool()),
                         name_of);

}  // namespace
}  // namespace tmap::ragged::testing
