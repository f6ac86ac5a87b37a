// SPDX-License-Identifier: Apache-2.0
#include "ragged/vector_work.hpp"
#include "support/ragged_values_reference.hpp"

// Tests the kernels of cast, saxpy, max_pool_1d and reduce_rows by every route. Compares the whole
// memory of the destination with results by definition, byte for byte.

namespace tmap::testing {
namespace {

using ragged::row_reduction;
using ragged::value_type;

constexpr std::optional<route> every_way[] = {std::nullopt, route::tensor_map, route::bulk, route::ldgsts,
                                              route::plain};

class vector_kernel : public gpu_test {
 protected:
  random_source random{20261121};

  /// Returns row lengths near all sizes at which the kernels cut.
  std::vector<extents> lengths(std::uint64_t largest) {
    std::vector<extents> shapes;
    for (std::uint64_t n = 0; n <= 70; ++n) shapes.push_back({{n, 1, 1, 1, 1}});
    for (const std::uint64_t n : {127,  128,  129,  255,  256,  257,  511,  512,  513,   929,   961,  999,
                                  1000, 1001, 1023, 1024, 1025, 2048, 4097, 8193, 16384, 16385, 40000}) {
      shapes.push_back({{n, 1, 1, 1, 1}});
    }
    for (const std::uint64_t n : {largest - 1, largest, largest + 1}) shapes.push_back({{n, 1, 1, 1, 1}});
    return shapes;
  }

  vector_sides sides(const std::vector<extents>& shapes, std::uint32_t rank, std::uint32_t from, std::uint32_t to,
                     bool has_rows = false) {
    std::vector<extents> made = shapes;
    if (has_rows) {
      for (extents& shape : made) shape.dim[0] = shape.dim[0] != 0;
    }
    return {lay_out(random, shapes, rank, from, source_form::columns),
            lay_out(random, made, rank, to, source_form::columns), has_rows};
  }

  void fill_floats(host_batch& batch) {
    for (std::uint64_t at = 0; at + sizeof(float) <= batch.bytes.size(); at += sizeof(float)) {
      float value = static_cast<float>(static_cast<std::int64_t>(random.bits() >> 40) - (1 << 23)) / (1 << 20);
      if (random.one_in(50)) value = random.one_in(2) ? 0.0f : -0.0f;
      if (random.one_in(3000)) value = std::nanf("");
      if (random.one_in(3000)) value = -std::numeric_limits<float>::infinity();
      std::memcpy(batch.bytes.data() + at, &value, sizeof value);
    }
  }

  /// The number of tensors that each route has moved so far.
  std::uint32_t moved[route_count]{};
  void count_routes(const vector_work& work) {
    for (std::uint32_t i = 0; i < route_count; ++i) moved[i] += work.of_route(static_cast<route>(i));
  }
  void expect_all_routes() const {
    for (std::uint32_t i = 0; i < route_count; ++i) EXPECT_GT(moved[i], 0u) << name(static_cast<route>(i));
  }

  std::vector<extents> shapes(std::uint32_t rank) { return random_shapes(random, {rank, 120, 12000, false, 9}); }
};

TEST_F(vector_kernel, saxpy) {
  for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
    for (const auto& way : every_way) {
      for (int i = 0; i < 3; ++i) {
        vector_sides both = sides(rank == 1 ? lengths(1 << 17) : shapes(rank), rank, 4, 4);
        fill_floats(both.source);
        fill_floats(both.destination);
        const vector_work work(both, kernels::saxpy_pieces(rank), way);
        count_routes(work);
        TMAP_ASSERT_CUDA(kernels::launch_saxpy(work.work(), 1.7f, this_device(), nullptr));
        reference::saxpy(1.7f, both.source, both.destination);
        SCOPED_TRACE(::testing::Message() << "rank " << rank << " route " << (way ? name(*way) : "mixed"));
        expect_bytes(both.destination.bytes, work.result());
        if (HasFailure()) return;
      }
    }
  }
  expect_all_routes();
}

TEST_F(vector_kernel, max_pool) {
  for (const std::uint32_t radius : {0u, 1u, 2u, 15u, 16u, 31u, 32u, 100u, 255u, 256u, 257u, 1000u, 3000000u, ~0u}) {
    for (const auto& way : every_way) {
      const std::uint32_t rank = way == every_way[0] ? 1 : 1 + random.below32(max_rank);
      vector_sides both = sides(rank == 1 ? lengths(1 << 16) : shapes(rank), rank, 4, 4);
      fill_floats(both.source);
      const vector_work work(both, kernels::max_pool_pieces(radius, rank), way);
      count_routes(work);
      TMAP_ASSERT_CUDA(kernels::launch_max_pool_1d(work.work(), radius, this_device(), nullptr));
      reference::max_pool(radius, both.source, both.destination);
      SCOPED_TRACE(::testing::Message() << "radius " << radius << " rank " << rank << " route "
                                        << (way ? name(*way) : "mixed"));
      expect_bytes(both.destination.bytes, work.result());
      if (HasFailure()) return;
    }
  }
  expect_all_routes();
}

TEST_F(vector_kernel, reduce_rows) {
  for (const value_type type : {value_type::f32, value_type::f16, value_type::bf16}) {
    for (const row_reduction reduction : {row_reduction::sum, row_reduction::max}) {
      for (const auto& way : every_way) {
        const std::uint32_t rank = way == every_way[0] ? 1 : 1 + random.below32(max_rank);
        vector_sides both = sides(rank == 1 ? lengths(1 << 18) : shapes(rank), rank, value_bytes(type), 4, true);
        if (type == value_type::f32) fill_floats(both.source);
        const vector_work work(both, kernels::reduce_pieces(type, rank), way);
        count_routes(work);
        TMAP_ASSERT_CUDA(kernels::launch_reduce_rows(work.work(), type, reduction, this_device(), nullptr));
        reference::reduce_rows(type, reduction, both.source, both.destination);
        SCOPED_TRACE(::testing::Message() << "type " << static_cast<int>(type) << " rank " << rank << " route "
                                          << (way ? name(*way) : "mixed"));
        expect_bytes(both.destination.bytes, work.result());
        if (HasFailure()) return;
      }
    }
  }
  expect_all_routes();
}

/// Rows are so long that warps take turns on all of them. The first piece of some leaves the last
/// one empty.
TEST_F(vector_kernel, long_rows_in_turns) {
  const std::vector<extents> rows{{{2500001, 1, 1, 1, 1}}, {{9601, 1, 1, 1, 1}}, {{3200000, 1, 1, 1, 1}}};
  for (const auto& way : every_way) {
    SCOPED_TRACE(way ? name(*way) : "mixed");
    vector_sides sums = sides(rows, 1, 4, 4);
    fill_floats(sums.source);
    fill_floats(sums.destination);
    const vector_work saxpy(sums, kernels::saxpy_pieces(1), way);
    TMAP_ASSERT_CUDA(kernels::launch_saxpy(saxpy.work(), -0.3f, this_device(), nullptr));
    reference::saxpy(-0.3f, sums.source, sums.destination);
    expect_bytes(sums.destination.bytes, saxpy.result());

    vector_sides tops = sides(rows, 1, 4, 4);
    fill_floats(tops.source);
    const vector_work pool(tops, kernels::max_pool_pieces(15, 1), way);
    TMAP_ASSERT_CUDA(kernels::launch_max_pool_1d(pool.work(), 15, this_device(), nullptr));
    reference::max_pool(15, tops.source, tops.destination);
    expect_bytes(tops.destination.bytes, pool.result());

    for (const bool widens : {false, true}) {
      const ragged::cast_values values{widens ? value_type::u8 : value_type::f32,
                                       widens ? value_type::f32 : value_type::u8,
                                       0.5f,
                                       3,
                                       nullptr,
                                       nullptr};
      vector_sides both = sides(rows, 1, value_bytes(values.from), value_bytes(values.to));
      if (!widens) fill_floats(both.source);
      const vector_work cast(both, kernels::cast_pieces(values, 1), way);
      TMAP_ASSERT_CUDA(kernels::launch_cast(cast.work(), values, this_device(), nullptr));
      reference::cast(values, both.source, both.destination, {}, {});
      expect_bytes(both.destination.bytes, cast.result());
    }
  }
}

/// A row that many warps share has the same sum as one that a single warp processes.
TEST_F(vector_kernel, split_rows) {
  for (const std::uint64_t n : {std::uint64_t{1} << 20, (std::uint64_t{1} << 23) + 4097, std::uint64_t{20000001}}) {
    vector_sides both = sides({{{n, 1, 1, 1, 1}}, {{n / 2, 1, 1, 1, 1}}}, 1, 4, 4, true);
    for (std::uint64_t at = 0; at < both.source.bytes.size(); ++at) {
      if (at % 4 == 3) both.source.bytes[at] = static_cast<unsigned char>(0x3f | (both.source.bytes[at] & 0x80));
    }
    const std::vector<unsigned char> before = both.destination.bytes;
    reference::reduce_rows(value_type::f32, row_reduction::sum, both.source, both.destination);
    for (const bool is_split : {true, false}) {
      vector_sides fresh = both;
      fresh.destination.bytes = before;
      const vector_work work(fresh, kernels::reduce_pieces(value_type::f32, 1), std::nullopt, is_split);
      TMAP_ASSERT_CUDA(
          kernels::launch_reduce_rows(work.work(), value_type::f32, row_reduction::sum, this_device(), nullptr));
      SCOPED_TRACE(::testing::Message() << n << (is_split ? " split" : " whole"));
      expect_bytes(both.destination.bytes, work.result());
    }
  }
}

TEST_F(vector_kernel, cast) {
  for (std::uint32_t pair = 0; pair < 36; ++pair) {
    const auto from = static_cast<value_type>(pair / 6);
    const auto to = static_cast<value_type>(pair % 6);
    for (const auto& way : every_way) {
      const std::uint32_t rank = way == every_way[0] ? 1 : 1 + random.below32(max_rank);
      vector_sides both = sides(rank == 1 ? lengths(1 << 14) : shapes(rank), rank, value_bytes(from), value_bytes(to));
      if (from == value_type::f32 && random.one_in(2)) fill_floats(both.source);
      std::vector<float> scales;
      std::vector<float> shifts;
      ragged::cast_values values{from, to, 0.5f, 3, nullptr, nullptr};
      for (std::uint64_t i = 0; i < both.source.tensors.size(); ++i) {
        scales.push_back(static_cast<float>(random.below(9)) / 4);
        shifts.push_back(static_cast<float>(random.below(9)));
      }
      if (random.one_in(3)) scales.clear();
      if (random.one_in(3)) shifts.clear();
      const device_array<float> device_scales(scales);
      const device_array<float> device_shifts(shifts);
      if (!scales.empty()) values.scales = device_scales.data();
      if (!shifts.empty()) values.shifts = device_shifts.data();
      const vector_work work(both, kernels::cast_pieces(values, rank), way);
      count_routes(work);
      TMAP_ASSERT_CUDA(kernels::launch_cast(work.work(), values, this_device(), nullptr));
      reference::cast(values, both.source, both.destination, scales, shifts);
      SCOPED_TRACE(::testing::Message() << "from " << pair / 6 << " to " << pair % 6 << " rank " << rank << " route "
                                        << (way ? name(*way) : "mixed"));
      expect_bytes(both.destination.bytes, work.result());
      if (HasFailure()) return;
    }
  }
  expect_all_routes();
}

}  // namespace
}  // namespace tmap::testing
