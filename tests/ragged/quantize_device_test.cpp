// SPDX-License-Identifier: Apache-2.0
// Quantizes and sums columns on a GPU. Compares the whole memory of every side, with the bytes
// around tensors, with results by definition. The host's engine is compared with the same.
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "support/quantize_cases.hpp"
#include "support/ragged_upload.hpp"

namespace tmap::testing {
namespace {

using ragged::quantize_values;
using ragged::scale_block;
using ragged::value_type;

class quantize_device : public gpu_test {
 protected:
  /// Calls `operate(run)` on a stream with a workspace for `count` tensors, and waits.
  template <class Operate>
  std::vector<ragged::tensor_status> run_on_stream(std::uint64_t count, std::uint32_t rank, const Operate& operate) {
    const auto needed = ragged::workspace_bytes(count, rank);
    const device_array<unsigned char> scratch(needed.value());
    const device_array<ragged::tensor_status> statuses(count);
    ragged::run with{on_stream{cuda::stream_ref{cudaStream_t{nullptr}}, {scratch.data(), *needed}}};
    with.statuses = statuses.data();
    const result<void> done = operate(with);
    EXPECT_TRUE(done.has_value()) << to_string(done.error());
    return statuses.download();
  }

  void expect_quantized(const quantize_batch& batch, const quantize_values& values, source_form form,
                        array_side arrays = array_side::device) {
    const device_side from(batch.source, form, arrays);
    const device_side to(batch.destination, form, arrays);
    const device_side factors(batch.scales, source_form::array, arrays);
    const auto statuses = run_on_stream(batch.source.tensors.size(), batch.source.rank, [&](const ragged::run& with) {
      return ragged::quantize(from.described(), to.described(), factors.described(), values, with);
    });
    for (std::uint64_t i = 0; i < statuses.size(); ++i) {
      const bool is_empty = batch.source.tensors[i].shape.elements() == 0;
      EXPECT_EQ(statuses[i].bits, is_empty ? ragged::tensor_status::empty_bit : 0) << i;
    }
    quantize_batch expected = batch;
    reference::quantize(values, expected.source, expected.destination, expected.scales);
    SCOPED_TRACE(::testing::Message() << "from " << static_cast<int>(values.from) << " to "
                                      << static_cast<int>(values.to) << " block " << static_cast<int>(values.block)
                                      << " powers " << values.powers_of_two << " transposed "
                                      << values.transposed_scales << " rank " << batch.source.rank);
    expect_bytes(expected.source.bytes, from.memory().download());
    expect_bytes(expected.destination.bytes, to.memory().download());
    expect_bytes(expected.scales.bytes, factors.memory().download());
  }

  void expect_sums(const std::vector<extents>& shapes, value_type type, value_type to_type, source_form form,
                   std::uint64_t odd_one_in = 200000) {
    std::vector<extents> made = shapes;
    for (extents& shape : made) shape.dim[1] = 1;
    host_batch source = lay_out(random_, shapes, 2, value_bytes(type), form);
    host_batch destination = lay_out(random_, made, 2, value_bytes(to_type), source_form::array);
    make_addends(random_, type, source, odd_one_in);
    const device_side from(source, form, array_side::device);
    const device_side to(destination, source_form::array, array_side::device);
    const auto statuses = run_on_stream(shapes.size(), 2, [&](const ragged::run& with) {
      return ragged::column_sums(from.described(), type, to.described(), to_type, with);
    });
    for (std::uint64_t i = 0; i < statuses.size(); ++i) {
      EXPECT_EQ(statuses[i].bits, shapes[i].dim[0] == 0 ? ragged::tensor_status::empty_bit : 0) << i;
    }
    reference::column_sums(type, to_type, source, destination);
    SCOPED_TRACE(::testing::Message() << "from " << static_cast<int>(type) << " to " << static_cast<int>(to_type));
    expect_bytes(source.bytes, from.memory().download());
    expect_bytes(destination.bytes, to.memory().download());
  }

  random_source random_{20261123};
};

TEST_F(quantize_device, every_type_block_and_rank) {
  for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
    for_each_quantization(rank, [&](const quantize_values& values) {
      const quantize_batch batch =
          make_quantize_batch(random_, quantize_shapes(random_, rank), rank, values, source_form::array);
      expect_quantized(batch, values, source_form::array);
    });
    if (HasFailure()) return;
  }
}

TEST_F(quantize_device, every_source_of_extents) {
  for (std::uint32_t form = 0; form < source_forms; ++form) {
    for (const array_side arrays : {array_side::device, array_side::host}) {
      const auto given = static_cast<source_form>(form);
      const quantize_values values{value_type::bf16, value_type::f8_e4m3, scale_block::block_1x128};
      const auto shapes = random_shapes(random_, {2, 200, 3000, is_rows(given), 9});
      expect_quantized(make_quantize_batch(random_, shapes, 2, values, given), values, given, arrays);
    }
  }
}

TEST_F(quantize_device, large_matrices) {
  for (const scale_block block :
       {scale_block::row, scale_block::block_1x128, scale_block::block_128x128, scale_block::block_128x1}) {
    for (const std::uint64_t rows : {8, 1500}) {
      const quantize_values values{value_type::bf16, value_type::f8_e4m3, block};
      const std::vector<extents> shapes{{{7168, rows, 1, 1, 1}}, {{4096, rows, 1, 1, 1}}};
      expect_quantized(make_quantize_batch(random_, shapes, 2, values, source_form::packed_columns), values,
                       source_form::packed_columns);
    }
  }
}

/// Each warp has several tiles, which it loads ahead.
TEST_F(quantize_device, long_columns) {
  for (const value_type from : {value_type::bf16, value_type::f32}) {
    const quantize_values values{from, value_type::f8_e5m2, scale_block::block_128x1};
    const std::vector<extents> shapes{{{4096 / value_bytes(from), 12000, 1, 1, 1}}};
    expect_quantized(make_quantize_batch(random_, shapes, 2, values, source_form::packed_columns), values,
                     source_form::packed_columns);
  }
}

/// Groups of any size, whose lines begin at multiples of 16 bytes and end anywhere.
TEST_F(quantize_device, many_groups_of_rows_to_lines) {
  const quantize_values values{value_type::bf16, value_type::f8_e4m3, scale_block::block_128x1};
  std::vector<extents> shapes;
  for (std::uint64_t g = 0; g < 200; ++g) shapes.push_back({{264, g * 7 % 300, 1, 1, 1}});
  expect_quantized(make_quantize_batch(random_, shapes, 2, values, source_form::columns), values, source_form::columns);
}

TEST_F(quantize_device, blocks_of_columns_are_those_of_the_transpose) {
  for (const bool is_transposed : {false, true}) {
    quantize_values values{value_type::bf16, value_type::f8_e4m3, scale_block::block_128x1, false, is_transposed};
    const std::vector<extents> shapes{{{1024, 1000, 1, 1, 1}}, {{136, 37, 1, 1, 1}}, {{3, 129, 1, 1, 1}}};
    const quantize_batch batch = make_quantize_batch(random_, shapes, 2, values, source_form::array);
    std::vector<extents> turned_shapes;
    for (const extents& shape : shapes) turned_shapes.push_back(reference::quantized_shape(values, shape));
    const host_batch turned = lay_out(random_, turned_shapes, 2, 2, source_form::array);
    const device_side from(batch.source, source_form::array, array_side::device);
    const device_side between(turned, source_form::array, array_side::device);
    const device_side to(batch.destination, source_form::array, array_side::device);
    const device_side factors(batch.scales, source_form::array, array_side::device);
    const device_side want(batch.destination, source_form::array, array_side::device);
    const device_side want_factors(batch.scales, source_form::array, array_side::device);
    run_on_stream(shapes.size(), 2, [&](const ragged::run& with) {
      return ragged::quantize(from.described(), to.described(), factors.described(), values, with);
    });
    run_on_stream(shapes.size(), 2, [&](const ragged::run& with) {
      return ragged::transpose(from.described(), between.described(), with);
    });
    values.block = scale_block::block_1x128;
    values.transposed_scales = !is_transposed;
    run_on_stream(shapes.size(), 2, [&](const ragged::run& with) {
      return ragged::quantize(between.described(), want.described(), want_factors.described(), values, with);
    });
    expect_bytes(want.memory().download(), to.memory().download());
    expect_bytes(want_factors.memory().download(), factors.memory().download());
  }
}

TEST_F(quantize_device, bad_scales_leave_their_tensor_alone) {
  const quantize_values values{value_type::bf16, value_type::f8_e4m3, scale_block::block_1x128};
  const std::vector<extents> shapes(9, extents{{300, 5, 1, 1, 1}});
  quantize_batch batch = make_quantize_batch(random_, shapes, 2, values, source_form::array);
  quantize_batch expected = batch;
  reference::quantize(values, expected.source, expected.destination, expected.scales);
  const std::vector<std::uint32_t> faults = spoil_scales(batch.scales);
  const device_side from(batch.source, source_form::array, array_side::device);
  const device_side to(batch.destination, source_form::array, array_side::device);
  const device_side factors(batch.scales, source_form::array, array_side::device);
  const auto statuses = run_on_stream(shapes.size(), 2, [&](const ragged::run& with) {
    return ragged::quantize(from.described(), to.described(), factors.described(), values, with);
  });
  for (std::uint64_t i = 0; i < shapes.size(); ++i) {
    EXPECT_EQ(statuses[i].bits, faults[i]) << i;
    if (faults[i] == 0) continue;
    for_each_element(shapes[i], [&](const std::uint64_t* at) {
      *expected.destination.element(i, at) = *batch.destination.element(i, at);
    });
  }
  expect_bytes(expected.destination.bytes, to.memory().download());
}

TEST_F(quantize_device, sums_of_columns_of_every_shape) {
  for (const value_type type : float_types) {
    for (const value_type to_type : {value_type::f32, type}) {
      std::vector<extents> shapes;
      for (const std::uint64_t columns : {0, 1, 8, 63, 64, 65, 512, 520, 1000}) {
        for (const std::uint64_t rows : {0, 1, 3, 4, 31, 32, 33, 64, 255, 256, 257, 600}) {
          shapes.push_back({{columns, rows, 1, 1, 1}});
        }
      }
      expect_sums(shapes, type, to_type, source_form::array);
      expect_sums(random_shapes(random_, {2, 300, 9000, false, 9}), type, to_type, source_form::columns);
    }
  }
}

/// Chunks of columns are shared by many blocks, or begin and end anywhere in a block's share.
TEST_F(quantize_device, sums_of_long_columns) {
  for (const value_type type : {value_type::bf16, value_type::f32}) {
    expect_sums({{{64, 200000, 1, 1, 1}}}, type, value_type::f32, source_form::array, 1u << 30);
    expect_sums({{{8, 20001, 1, 1, 1}}, {{200, 5000, 1, 1, 1}}, {{7, 40000, 1, 1, 1}}, {{300, 3, 1, 1, 1}}}, type, type,
                source_form::array);
    expect_sums({{{2048, 2000, 1, 1, 1}}}, type, value_type::f32, source_form::packed_columns);
    expect_sums(std::vector<extents>(300, extents{{72, 700, 1, 1, 1}}), type, value_type::f32,
                source_form::packed_columns);
  }
}

/// The sum of a column does not depend on the rest of the batch.
TEST_F(quantize_device, sums_do_not_depend_on_the_batch) {
  const extents shape{{130, 30000, 1, 1, 1}};
  host_batch alone = lay_out(random_, {shape}, 2, 2, source_form::array);
  make_addends(random_, value_type::bf16, alone, 1u << 30);
  std::vector<float> sums[2];
  for (const std::uint64_t count : {1, 90}) {
    const device_array<unsigned char> memory(alone.bytes);
    const device_array<float> made(130 * count);
    std::vector<map_patch> from(count);
    std::vector<map_patch> to(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      from[i].global_address = memory.address() + alone.tensors[0].begin;
      from[i].global_stride_bytes[0] = alone.tensors[0].stride[0];
      to[i].global_address = made.address() + 130 * 4 * i;
      for (map_patch* patch : {&from[i], &to[i]}) patch->global_dim[0] = 130;
      from[i].global_dim[1] = i == 0 ? 30000 : 1 + 17 * i;
      to[i].global_dim[1] = 1;
    }
    const device_array<map_patch> sources(from);
    const device_array<map_patch> destinations(to);
    run_on_stream(count, 2, [&](const ragged::run& with) {
      return ragged::column_sums({patch_array{sources.data()}, count, 2, 2}, value_type::bf16,
                                 {patch_array{destinations.data()}, count, 4, 2}, value_type::f32, with);
    });
    sums[count == 1 ? 0 : 1] = made.download();
    sums[count == 1 ? 0 : 1].resize(130);
  }
  EXPECT_EQ(std::memcmp(sums[0].data(), sums[1].data(), 130 * sizeof(float)), 0);
}

}  // namespace
}  // namespace tmap::testing
