// SPDX-License-Identifier: Apache-2.0
// Quantizes and sums columns on the host, and compares with the definitions.
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "simulator/ragged_compute_case.hpp"
#include "support/quantize_cases.hpp"
#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

using ragged::quantize_values;
using ragged::scale_block;

class ragged_quantize : public ragged_compute {
 protected:
  /// Returns tensors without gaps of the same shapes.
  host_batch host_batch_like(const host_batch& batch, std::uint32_t element_bytes) {
    std::vector<extents> shapes;
    for (const host_tensor& tensor : batch.tensors) shapes.push_back(tensor.shape);
    return laid_out(shapes, element_bytes);
  }
};

TEST_P(ragged_quantize, every_type_and_block) {
  for_each_quantization(rank(), [&](const quantize_values& values) {
    quantize_batch batch = make_quantize_batch(random_, shapes(), rank(), values, source_form::array);
    host_batch quantized = batch.destination;
    host_batch scales = batch.scales;
    reference::quantize(values, batch.source, quantized, scales);
    const host_side from{batch.source, source_form::array};
    const host_side to{batch.destination, source_form::array};
    const host_side factors{batch.scales, source_form::array};
    ASSERT_TRUE(ragged::quantize(from.described, to.described, factors.described, values, pinned()));
    expect_bytes(quantized.bytes, batch.destination.bytes);
    expect_bytes(scales.bytes, batch.scales.bytes);
  });
}

TEST_P(ragged_quantize, blocks_of_columns_are_those_of_the_transpose) {
  if (rank() < 2) return;
  for_each_quantization(rank(), [&](quantize_values values) {
    if (values.block != scale_block::block_128x1) return;
    quantize_batch batch = make_quantize_batch(random_, shapes(), rank(), values, source_form::array);
    const host_side from{batch.source, source_form::array};
    const host_side to{batch.destination, source_form::array};
    const host_side factors{batch.scales, source_form::array};
    host_batch turned = host_batch_like(batch.destination, value_bytes(values.from));
    host_batch want = batch.destination;
    host_batch want_scales = batch.scales;
    ASSERT_TRUE(ragged::quantize(from.described, to.described, factors.described, values, pinned()));
    const host_side between{turned, source_form::array};
    const host_side made{want, source_form::array};
    const host_side made_scales{want_scales, source_form::array};
    values.block = scale_block::block_1x128;
    values.transposed_scales = !values.transposed_scales;
    ASSERT_TRUE(ragged::transpose(from.described, between.described, pinned()));
    ASSERT_TRUE(ragged::quantize(between.described, made.described, made_scales.described, values, pinned()));
    expect_bytes(want.bytes, batch.destination.bytes);
    expect_bytes(want_scales.bytes, batch.scales.bytes);
  });
}

TEST_P(ragged_quantize, sums_of_columns) {
  if (rank() != 2) return;
  for (const value_type type : float_types) {
    for (const value_type to_type : {value_type::f32, type}) {
      std::vector<extents> all = shapes();
      all.push_back({{5, 0, 1, 1, 1}});
      all.push_back({{3, 300, 1, 1, 1}});
      all.push_back({{2, 9000, 1, 1, 1}});
      all.push_back({{2, 17000, 1, 1, 1}});
      host_batch source = laid_out(all, value_bytes(type));
      make_addends(random_, type, source, 100000);
      for (extents& shape : all) shape.dim[1] = 1;
      host_batch destination = laid_out(all, value_bytes(to_type));
      host_batch expected = destination;
      reference::column_sums(type, to_type, source, expected);
      const host_side from{source, source_form::array};
      const host_side to{destination, source_form::array};
      ASSERT_TRUE(ragged::column_sums(from.described, type, to.described, to_type, pinned()));
      expect_bytes(expected.bytes, destination.bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(all, ragged_quantize, every_compute_case(), compute_case_name);

/// One row of floats, its results and its scales.
struct quantized_row {
  std::vector<std::uint8_t> results;
  std::vector<float> scales;
};

quantized_row quantize_row(std::vector<float> row, value_type to, scale_block block, bool powers_of_two = false) {
  const std::uint64_t blocks = block == scale_block::row ? 1 : (row.size() + 127) / 128;
  quantized_row made{std::vector<std::uint8_t>(row.size()), std::vector<float>(blocks)};
  const auto batch_of = [](auto& values, map_patch& patch) {
    patch.global_address = reinterpret_cast<std::uint64_t>(values.data());
    patch.global_dim[0] = values.size();
    return tensor_batch{patch_array{&patch}, 1, sizeof(values[0]), 1};
  };
  map_patch patches[3]{};
  const tensor_batch source = batch_of(row, patches[0]);
  const tensor_batch destination = batch_of(made.results, patches[1]);
  const tensor_batch scales = batch_of(made.scales, patches[2]);
  EXPECT_TRUE(ragged::quantize(source, destination, scales, {value_type::f32, to, block, powers_of_two}, {on_host{}}));
  return made;
}

TEST(ragged_quantize_values, the_largest_magnitude_becomes_the_largest_finite_value) {
  const quantized_row small = quantize_row({1, -3.5f, 0.25f}, value_type::f8_e4m3, scale_block::row);
  EXPECT_EQ(small.scales[0], 3.5f / 448);
  EXPECT_EQ(small.results[1], 0xfe);
  const quantized_row wide = quantize_row({1, -3.5f, 0.25f}, value_type::f8_e5m2, scale_block::row);
  EXPECT_EQ(wide.scales[0], 3.5f / 57344);
  EXPECT_EQ(wide.results[1], 0xfb);
}

TEST(ragged_quantize_values, blocks_of_a_row_have_scales_of_their_own) {
  std::vector<float> row(300, 448);
  row[128] = 896;
  const quantized_row made = quantize_row(row, value_type::f8_e4m3, scale_block::block_1x128);
  EXPECT_EQ(made.scales, (std::vector<float>{1, 2, 1}));
  EXPECT_EQ(made.results[127], 0x7e);
  EXPECT_EQ(made.results[129], 0x76);
}

/// The second block of a column has 2 rows.
TEST(ragged_quantize_values, blocks_of_columns_have_scales_of_their_own) {
  constexpr std::uint64_t rows = 130;
  std::vector<float> values(3 * rows, 448);
  values[0] = 896;
  values[3 * 128 + 1] = 1792;
  std::vector<std::uint8_t> results(3 * rows);
  std::vector<float> scales(6);
  const auto batch_of = [](auto& memory, map_patch& patch, std::uint64_t columns) {
    patch.global_address = reinterpret_cast<std::uint64_t>(memory.data());
    patch.global_dim[0] = columns;
    patch.global_dim[1] = memory.size() / columns;
    patch.global_stride_bytes[0] = columns * sizeof(memory[0]);
    return tensor_batch{patch_array{&patch}, 1, sizeof(memory[0]), 2};
  };
  map_patch patches[3]{};
  ASSERT_TRUE(ragged::quantize(batch_of(values, patches[0], 3), batch_of(results, patches[1], rows),
                               batch_of(scales, patches[2], 3),
                               {value_type::f32, value_type::f8_e4m3, scale_block::block_128x1}, {on_host{}}));
  EXPECT_EQ(scales, (std::vector<float>{2, 1, 1, 1, 4, 1}));
  EXPECT_EQ(results[0], 0x7e);
  EXPECT_EQ(results[1], 0x76);
  EXPECT_EQ(results[128], 0x7e);
  EXPECT_EQ(results[rows], 0x7e);
  EXPECT_EQ(results[rows + 128], 0x7e);
  EXPECT_EQ(results[rows + 129], 0x6e);
}

TEST(ragged_quantize_values, powers_of_two_round_up) {
  const auto scale_of = [](float top) {
    return quantize_row({top}, value_type::f8_e4m3, scale_block::row, true).scales[0];
  };
  EXPECT_EQ(scale_of(448), 1);
  EXPECT_EQ(scale_of(449), 2);
  EXPECT_EQ(scale_of(224), 0.5f);
  EXPECT_EQ(scale_of(std::numeric_limits<float>::max()), 0x1p120f);
}

TEST(ragged_quantize_values, zeros_have_the_scale_1_and_keep_their_sign) {
  const quantized_row made = quantize_row({0, -0.0f}, value_type::f8_e4m3, scale_block::row);
  EXPECT_EQ(made.scales[0], 1);
  EXPECT_EQ(made.results, (std::vector<std::uint8_t>{0, 0x80}));
}

TEST(ragged_quantize_values, the_smallest_scale_is_a_normal_number) {
  for (const float top : {0x1p-149f, 0x1p-127f, 0x1p-126f}) {
    const quantized_row made = quantize_row({top}, value_type::f8_e4m3, scale_block::row);
    EXPECT_EQ(made.scales[0], 0x1p-126f) << top;
  }
  EXPECT_EQ(quantize_row({0x1p-126f}, value_type::f8_e4m3, scale_block::row).results[0], 0x38);
}

TEST(ragged_quantize_values, a_nan_or_an_infinity_spoils_its_block_alone) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float odd : {infinity, -infinity, std::nanf(""), std::bit_cast<float>(0xff800001u)}) {
    std::vector<float> row(256, 448);
    row[7] = odd;
    const quantized_row made = quantize_row(row, value_type::f8_e5m2, scale_block::block_1x128);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(made.scales[0]), 0x7fffffffu);
    for (int i = 0; i < 128; ++i) EXPECT_EQ(made.results[i], 0x7f);
    EXPECT_EQ(made.scales[1], 448.0f / 57344);
    EXPECT_EQ(made.results[128], 0x7b);
  }
}

TEST(ragged_quantize_faults, bad_scales_leave_their_tensor_alone) {
  random_source random{31};
  const quantize_values values{value_type::bf16, value_type::f8_e4m3, scale_block::block_1x128};
  const std::vector<extents> shapes(9, extents{{300, 5, 1, 1, 1}});
  quantize_batch batch = make_quantize_batch(random, shapes, 2, values, source_form::array);
  host_batch quantized = batch.destination;
  host_batch scales = batch.scales;
  reference::quantize(values, batch.source, quantized, scales);
  const std::vector<std::uint32_t> faults = spoil_scales(batch.scales);
  std::vector<ragged::tensor_status> statuses(shapes.size());
  const quantize_batch before = batch;
  const host_side from{batch.source, source_form::array};
  const host_side to{batch.destination, source_form::array};
  const host_side factors{batch.scales, source_form::array};
  ragged::run with{on_host{}};
  with.statuses = statuses.data();
  ASSERT_TRUE(ragged::quantize(from.described, to.described, factors.described, values, with));
  for (std::uint64_t i = 0; i < shapes.size(); ++i) {
    EXPECT_EQ(statuses[i].bits, faults[i]) << i;
    for_each_element(shapes[i], [&](const std::uint64_t* at) {
      const host_batch& wanted = faults[i] == 0 ? quantized : before.destination;
      ASSERT_EQ(*batch.destination.element(i, at), *wanted.element(i, at)) << i;
    });
  }
}

/// The destination of tensor 1 has the dims of its source, and the scales of tensor 2 are those of
/// rows.
TEST(ragged_quantize_faults, blocks_of_columns_exchange_the_dims_of_the_destination) {
  random_source random{33};
  const quantize_values values{value_type::bf16, value_type::f8_e5m2, scale_block::block_128x1};
  const std::vector<extents> shapes(3, extents{{300, 140, 1, 1, 1}});
  quantize_batch batch = make_quantize_batch(random, shapes, 2, values, source_form::array);
  std::swap(batch.destination.tensors[1].shape.dim[0], batch.destination.tensors[1].shape.dim[1]);
  std::swap(batch.scales.tensors[2].shape.dim[0], batch.scales.tensors[2].shape.dim[1]);
  std::vector<ragged::tensor_status> statuses(shapes.size());
  const quantize_batch before = batch;
  const host_side from{batch.source, source_form::array};
  const host_side to{batch.destination, source_form::array};
  const host_side factors{batch.scales, source_form::array};
  ragged::run with{on_host{}};
  with.statuses = statuses.data();
  ASSERT_TRUE(ragged::quantize(from.described, to.described, factors.described, values, with));
  const auto mismatch = static_cast<std::uint32_t>(ragged::fault::mismatch);
  EXPECT_EQ(statuses[0].bits, 0u);
  EXPECT_EQ(statuses[1].bits & mismatch, mismatch);
  EXPECT_EQ(statuses[2].bits & mismatch, mismatch);
  for (std::uint64_t i : {1, 2}) {
    for_each_element(before.destination.tensors[i].shape, [&](const std::uint64_t* at) {
      ASSERT_EQ(*batch.destination.element(i, at), *before.destination.element(i, at)) << i;
    });
  }
}

TEST(ragged_quantize_faults, arguments_are_named) {
  random_source random{32};
  const quantize_values good{value_type::f32, value_type::f8_e4m3, scale_block::row};
  quantize_batch batch = make_quantize_batch(random, {extents{{9, 1, 1, 1, 1}}}, 1, good, source_form::array);
  const host_side from{batch.source, source_form::array};
  const host_side to{batch.destination, source_form::array};
  const host_side factors{batch.scales, source_form::array};
  const auto refused = [&](quantize_values values, tensor_batch scales) {
    return refused_argument(ragged::quantize(from.described, to.described, scales, values, {on_host{}}));
  };
  const tensor_batch scales = factors.described;
  quantize_values values = good;
  values.from = value_type::u8;
  EXPECT_EQ(refused(values, scales), "values.from");
  values = good;
  values.to = value_type::f16;
  EXPECT_EQ(refused(values, scales), "values.to");
  values = good;
  values.block = static_cast<scale_block>(4);
  EXPECT_EQ(refused(values, scales), "values.block");
  values = good;
  values.block = scale_block::block_128x1;
  EXPECT_EQ(refused(values, scales), "source.rank");
  values = good;
  values.transposed_scales = true;
  EXPECT_EQ(refused(values, scales), "source.rank");
  tensor_batch bad = scales;
  bad.count = 2;
  EXPECT_EQ(refused(good, bad), "scales.count");
  bad = scales;
  bad.element_bytes = 2;
  EXPECT_EQ(refused(good, bad), "scales.element_bytes");
  const auto sums = [&](value_type type, value_type to_type) {
    return refused_argument(ragged::column_sums(from.described, type, scales, to_type, {on_host{}}));
  };
  EXPECT_EQ(sums(value_type::f8_e4m3, value_type::f32), "from");
  EXPECT_EQ(sums(value_type::f32, value_type::f16), "to");
  EXPECT_EQ(sums(value_type::f16, value_type::f32), "source.element_bytes");
  EXPECT_EQ(sums(value_type::f32, value_type::f32), "source.rank");
}

}  // namespace
}  // namespace tmap::testing
