// SPDX-License-Identifier: Apache-2.0
// Runs packing, padding, transposing and rows by index above 2^31 elements and above 2^32 bytes, by
// every route. The tests check every element of both sides, including those between tensors. They
// use at most 26 GiB of device memory.
#include "ragged/huge_fixture.cuh"

namespace tmap::ragged::testing {
namespace {

constexpr std::uint64_t two_31 = std::uint64_t{1} << 31;
constexpr std::uint64_t two_32 = std::uint64_t{1} << 32;

class ragged_huge_packed : public ragged_huge {
 protected:
  static constexpr std::uint64_t alignment = 256;

  static ragged::packed_buffer buffer_of(const huge_side& side, std::uint64_t memory, std::int64_t* begins) {
    const std::uint64_t first = side.tensors[0].begin;
    const std::uint64_t end = side.tensors[side.count - 1].end();
    return {reinterpret_cast<void*>(memory + first), end - first, alignment, begins};
  }

  static void expect_begins(const huge_side& side, const device_array<std::int64_t>& begins) {
    const std::vector<std::int64_t> found = begins.download();
    for (std::uint32_t i = 0; i < side.count; ++i) {
      EXPECT_EQ(found[i], static_cast<std::int64_t>(side.tensors[i].begin - side.tensors[0].begin)) << i;
    }
  }
};

TEST_P(ragged_huge_packed, pack) {
  huge_sides both = sides(1);
  both.destination = pack_huge(shapes(1), alignment);
  if (!fits(both, 1, 1)) GTEST_SKIP() << no_room;
  const device_array<std::int64_t> begins(both.source.count + 1);
  expect_result<std::uint8_t, std::uint8_t>(
      both, noise_bytes{}, nothing_yet<std::uint8_t>{}, copied_bytes{both.source}, [&](const huge_call& c) {
        const packed_buffer packed = buffer_of(both.destination, c.to, begins.data());
        return pack(c.source, packed, c.with);
      });
  expect_begins(both.destination, begins);
}

TEST_P(ragged_huge_packed, unpack) {
  huge_sides both = sides(1);
  both.source = pack_huge(shapes(1), alignment);
  if (!fits(both, 1, 1)) GTEST_SKIP() << no_room;
  const device_array<std::int64_t> begins(both.source.count + 1);
  expect_result<std::uint8_t, std::uint8_t>(
      both, noise_bytes{}, nothing_yet<std::uint8_t>{}, copied_bytes{both.source}, [&](const huge_call& c) {
        const packed_buffer packed = buffer_of(both.source, c.from, begins.data());
        return unpack(packed, c.destination, c.with);
      });
  expect_begins(both.source, begins);
}

INSTANTIATE_TEST_SUITE_P(
    routes, ragged_huge_packed,
    ::testing::ValuesIn(huge_params({huge_kind::one, huge_kind::batch, huge_kind::large, huge_kind::wide})), name_huge);

class ragged_huge_dense : public ragged_huge {
 protected:
  /// Returns more columns, within the row lengths of the setting, and more rows.
  static std::vector<matrix_shape> larger_shapes() {
    std::vector<matrix_shape> all = shapes(1);
    for (matrix_shape& shape : all) shape = {shape.columns + 3 * setting().column_step, shape.rows + 1};
    return all;
  }

  static dense_batch dense_of(const huge_side& side, std::uint64_t memory) {
    const huge_tensor& tensor = side.tensors[0];
    dense_batch dense{};
    dense.address = memory + tensor.begin;
    dense.dim[0] = tensor.columns;
    dense.dim[1] = tensor.rows;
    dense.stride_bytes[0] = tensor.pitch;
    return dense;
  }
};

TEST_P(ragged_huge_dense, pad) {
  huge_sides both = sides(1);
  both.destination = lay_out_huge(larger_shapes(), setting().odd[1]);
  if (!fits(both, 1, 1)) GTEST_SKIP() << no_room;
  const fill_value fill{{0x3c}};
  expect_result<std::uint8_t, std::uint8_t>(
      both, noise_bytes{}, nothing_yet<std::uint8_t>{}, padded_bytes{both.source, 0x3c},
      [&](const huge_call& c) { return pad(c.source, dense_of(both.destination, c.to), fill, c.with); });
}

TEST_P(ragged_huge_dense, unpad) {
  huge_sides both = sides(1);
  both.source = lay_out_huge(larger_shapes(), setting().odd[0]);
  if (!fits(both, 1, 1)) GTEST_SKIP() << no_room;
  expect_result<std::uint8_t, std::uint8_t>(
      both, noise_bytes{}, nothing_yet<std::uint8_t>{}, copied_bytes{both.source},
      [&](const huge_call& c) { return unpad(dense_of(both.source, c.from), c.destination, c.with); });
}

INSTANTIATE_TEST_SUITE_P(routes, ragged_huge_dense,
                         ::testing::ValuesIn(huge_params({huge_kind::large, huge_kind::wide})), name_huge);

class ragged_huge_turned : public ragged_huge {
 protected:
  static void expect_turned(const matrix_shape& source, std::uint64_t destination_pitch) {
    const matrix_shape turned{source.rows, source.columns, destination_pitch};
    const huge_sides both{lay_out_huge({source}, setting().odd[0]), lay_out_huge({turned}, setting().odd[1])};
    if (!fits(both, 1, 1)) GTEST_SKIP() << no_room;
    expect_result<std::uint8_t, std::uint8_t>(
        both, noise_bytes{}, nothing_yet<std::uint8_t>{}, turned_bytes{both.source},
        [](const huge_call& c) { return transpose(c.source, c.destination, c.with); });
  }
};

TEST_P(ragged_huge_turned, bytes) {
  const matrix_shape wide = shapes(1)[0];
  expect_turned(wide, 0);
}

TEST_P(ragged_huge_turned, floats) {
  const matrix_shape wide = shapes(4)[0];
  const huge_sides both{lay_out_huge({wide}, setting().odd[0]),
                        lay_out_huge({{wide.rows, wide.columns}}, setting().odd[1])};
  if (!fits(both, 4, 4)) GTEST_SKIP() << no_room;
  expect_result<std::uint32_t, std::uint32_t>(
      both, noise_floats{}, nothing_yet<std::uint32_t>{}, turned_floats{both.source},
      [](const huge_call& c) { return transpose(c.source, c.destination, c.with); });
}

// Matrices with more than 2^31 columns or rows, too thin for maps.
TEST_P(ragged_huge_turned, more_columns_than_2_31) {
  expect_turned({two_31 + 37, 3}, 4);
}
TEST_P(ragged_huge_turned, more_rows_than_2_31) {
  expect_turned({3, two_31 + 37, 4}, 0);
}
TEST_P(ragged_huge_turned, pixels_to_planes) {
  expect_turned({3, two_31 + 37, 3}, 0);
}
TEST_P(ragged_huge_turned, planes_to_pixels) {
  expect_turned({two_31 + 37, 3}, 3);
}

INSTANTIATE_TEST_SUITE_P(routes, ragged_huge_turned, ::testing::ValuesIn(huge_params({huge_kind::wide})), name_huge);

/// Matrices of more than 2^31 rows. They are not folded if the operation depends on rows or there
/// is a gap between them.
class ragged_huge_tall : public ragged_huge {
 protected:
  static huge_sides tall_sides(std::uint64_t source_pitch, std::uint64_t destination_pitch) {
    return {lay_out_huge({{1, two_31 + 37, source_pitch}}, setting().odd[0]),
            lay_out_huge({{1, two_31 + 37, destination_pitch}}, setting().odd[1])};
  }
};

TEST_P(ragged_huge_tall, copy) {
  const huge_sides both = tall_sides(3, 2);
  if (!fits(both, 1, 1)) GTEST_SKIP() << no_room;
  expect_result<std::uint8_t, std::uint8_t>(both, noise_bytes{}, nothing_yet<std::uint8_t>{}, copied_bytes{both.source},
                                            [](const huge_call& c) { return copy(c.source, c.destination, c.with); });
}

TEST_P(ragged_huge_tall, cast) {
  const huge_sides both = tall_sides(3, 2);
  if (!fits(both, 1, 4)) GTEST_SKIP() << no_room;
  const cast_values values{value_type::u8, value_type::f32, 0.5f, 3, nullptr, nullptr};
  expect_result<std::uint8_t, std::uint32_t>(
      both, noise_bytes{}, nothing_yet<std::uint32_t>{}, bytes_as_floats{both.source, values.scale, values.shift},
      [&](const huge_call& c) { return cast(c.source, c.destination, values, c.with); });
}

TEST_P(ragged_huge_tall, max_pool_1d) {
  const huge_sides both = tall_sides(1, 1);
  if (!fits(both, 4, 4)) GTEST_SKIP() << no_room;
  expect_result<std::uint32_t, std::uint32_t>(
      both, noise_floats{}, nothing_yet<std::uint32_t>{}, window_maxima{both.source, 2},
      [](const huge_call& c) { return max_pool_1d(c.source, c.destination, 2, c.with); });
}

// Only a pitch of one element leaves enough room.
TEST_P(ragged_huge_tall, row_sums) {
  const huge_sides both = tall_sides(1, 1);
  if (!fits(both, 2, 4)) GTEST_SKIP() << no_room;
  expect_result<std::uint16_t, std::uint32_t>(
      both, small_halves{}, nothing_yet<std::uint32_t>{}, halves_as_floats{both.source}, [](const huge_call& c) {
        return reduce_rows(c.source, value_type::bf16, row_reduction::sum, c.destination, c.with);
      });
}

INSTANTIATE_TEST_SUITE_P(routes, ragged_huge_tall,
                         ::testing::Values(huge_param{huge_settings[0], huge_kind::large},
                                           huge_param{huge_settings[1], huge_kind::large}),
                         name_huge);

struct huge_rows {
  const char* name;
  std::uint64_t row_bytes;
  std::uint64_t pitch;
  std::uint64_t rows;
  std::uint64_t count;  ///< number of indices
  std::uint32_t index_bytes;
  std::uint64_t odd;
};
constexpr huge_rows huge_matrices[] = {
    {"bytes", 1, 1, two_32 + 99, two_31 + 5, 8, 0},
    {"words", 36, 40, (1 << 27) + 7, (1 << 27) + 7, 4, 0},
    {"bulk", 1040, 1056, (1 << 22) + 5, (1 << 22) + 5, 4, 0},
    {"shifted", 1037, 1053, (1 << 22) + 5, (1 << 22) + 5, 4, 1},
    {"row_above_4_gib", two_32 + 16, two_32 + 48, 2, 2, 4, 0},
    {"odd_row_above_4_gib", two_32 + 5, two_32 + 7, 2, 2, 4, 1},
};

template <class Number>
__global__ void reverse_kernel(Number* index, std::uint64_t count, std::uint64_t rows) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    index[i] = static_cast<Number>(rows - 1 - i);
  }
}

class ragged_huge_rows : public gpu_test, public ::testing::WithParamInterface<std::tuple<huge_rows, bool>> {
 protected:
  static void expect_moved(bool scatters) {
    const auto& [matrix, has_engine] = GetParam();
    const huge_side large = lay_out_huge({{matrix.row_bytes, matrix.rows, matrix.pitch}}, matrix.odd);
    const huge_side small = lay_out_huge({{matrix.row_bytes, matrix.count, matrix.pitch}}, matrix.odd);
    const huge_side& source = scatters ? small : large;
    const huge_side& destination = scatters ? large : small;
    if (!has_room(large.elements + small.elements + matrix.count * matrix.index_bytes)) GTEST_SKIP() << no_room;
    const device_array<std::uint8_t> from(source.elements);
    const device_array<std::uint8_t> to(destination.elements);
    const device_array<std::uint32_t> index(matrix.count * matrix.index_bytes / 4);
    write_values(from, source, noise_bytes{});
    write_values(to, destination, nothing_yet<std::uint8_t>{});
    if (matrix.index_bytes == 4) {
      reverse_kernel<<<huge_blocks, huge_threads>>>(index.data(), matrix.count, matrix.rows);
    } else {
      auto* const numbers = reinterpret_cast<std::int64_t*>(index.data());
      reverse_kernel<<<huge_blocks, huge_threads>>>(numbers, matrix.count, matrix.rows);
    }
    TMAP_ASSERT_CUDA(cudaGetLastError());
    const auto rows_of = [](const huge_side& side, const device_array<std::uint8_t>& memory) {
      const huge_tensor& tensor = side.tensors[0];
      return row_matrix{memory.address() + tensor.begin, tensor.rows, tensor.columns, tensor.pitch};
    };
    const row_index numbers{index.data(), matrix.count, matrix.index_bytes};
    const device_array<batch_header> header(1);
    run with{on_stream{huge_stream}};
    with.choices.policy = has_engine ? route_policy::enable : route_policy::disable;
    with.header = header.data();
    const auto move = scatters ? scatter_rows : gather_rows;
    TMAP_ASSERT_OK(move(rows_of(source, from), numbers, rows_of(destination, to), with));
    EXPECT_EQ(header.download().front().bad_count, 0u);
    expect_values(to, destination, reversed_rows{source, matrix.rows});
    expect_values(from, source, noise_bytes{});
  }
};

TEST_P(ragged_huge_rows, gather) {
  expect_moved(false);
}
TEST_P(ragged_huge_rows, scatter) {
  expect_moved(true);
}

INSTANTIATE_TEST_SUITE_P(matrices, ragged_huge_rows,
                         ::testing::Combine(::testing::ValuesIn(huge_matrices), ::testing::Bool()),
                         [](const ::testing::TestParamInfo<std::tuple<huge_rows, bool>>& tested) {
                           const char* const way = std::get<1>(tested.param) ? "" : "_without_engine";
                           return std::string(std::get<0>(tested.param).name) + way;
                         });

/// There are more rows than a header's 32 bits can count, so its counts saturate. All existing rows
/// take the source's first byte again and again.
TEST_F(gpu_test, headers_of_more_rows_than_2_32) {
  constexpr std::uint64_t count = two_32 + 40;
  if (!has_room(5 * count)) GTEST_SKIP() << no_room;
  const device_array<std::int32_t> index(count);
  const device_array<std::uint8_t> source(1);
  const device_array<std::uint8_t> destination(count);
  const device_array<batch_header> header(1);
  const auto gather = [&] {
    run with{on_stream{huge_stream}};
    with.header = header.data();
    const row_matrix from{source.address(), 1, 1, 1};
    const row_matrix to{destination.address(), count, 1, 1};
    TMAP_ASSERT_OK(gather_rows(from, {index.data(), count, 4}, to, with));
  };
  TMAP_ASSERT_CUDA(cudaMemset(index.data(), 0xff, index.bytes()));
  gather();
  EXPECT_EQ(header.download().front().bad_count, ~0u) << "all are bad";
  EXPECT_EQ(header.download().front().first_bad, 0u);
  TMAP_ASSERT_CUDA(cudaMemset(index.data(), 0, index.bytes()));
  TMAP_ASSERT_CUDA(cudaMemset(index.data() + count - 7, 0xff, 4));
  gather();
  EXPECT_EQ(header.download().front().bad_count, 1u);
  EXPECT_EQ(header.download().front().first_bad, no_bad_item - 1);
}

}  // namespace
}  // namespace tmap::ragged::testing
