// SPDX-License-Identifier: Apache-2.0
// Measures quantize and column_sums on bf16 matrices, compared with copies of as many bytes.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/ragged/ragged_batch.hpp"
#include "apps/bench/ragged/ragged_case.hpp"
#include "apps/bench/ragged/ragged_peers.hpp"

namespace tmap::apps::bench {
namespace {

using ragged::quantize_values;
using ragged::scale_block;
using ragged::value_type;

constexpr int wrong_byte = 0x7f;

std::vector<placed_tensor> matrices(std::uint64_t count, std::uint64_t rows, std::uint64_t columns) {
  std::vector<placed_tensor> made(count);
  for (placed_tensor& tensor : made) {
    tensor.dim[0] = columns;
    tensor.dim[1] = rows;
  }
  return made;
}

/// Makes bf16 matrices of noise.
device_batch noise(const std::vector<placed_tensor>& tensors) {
  const device_batch wide(tensors, 4, 2, {16, 0, 0});
  device_batch made(tensors, 2, 2, {16, 0, 0});
  fill_with_floats(wide.memory());
  const std::uint64_t bytes = value_of(ragged::workspace_bytes(tensors.size(), 2));
  const device_array<unsigned char> scratch(bytes);
  require(ragged::cast(wide.described(), made.described(), {value_type::f32, value_type::bf16},
                       {on_stream{cuda::stream_ref{cudaStream_t{}}, {scratch.get(), bytes}}}));
  require(cudaDeviceSynchronize());
  return made;
}

/// A copy of a batch in host memory, as the host's engine reads it.
class host_copy {
 public:
  explicit host_copy(const device_batch& batch) : bytes_(batch.memory().bytes()), described_(batch.described()) {
    require(cudaMemcpy(bytes_.data(), batch.memory().get(), bytes_.size(), cudaMemcpyDeviceToHost));
    for (const placed_tensor& tensor : batch.tensors()) add(tensor, 0, tensor.dim[1]);
  }
  /// Describes nothing but these rows of the first tensor.
  void keep_rows(const placed_tensor& tensor, std::uint64_t first, std::uint64_t rows) {
    patches_.clear();
    add(tensor, first, rows);
  }
  /// Does the same for columns of bytes.
  void keep_columns(const placed_tensor& tensor, std::uint64_t first, std::uint64_t columns) {
    keep_rows(tensor, 0, tensor.dim[1]);
    patches_[0].global_address += first;
    patches_[0].global_dim[0] = columns;
  }
  tensor_batch described() const {
    tensor_batch made = described_;
    made.tensors = patch_array{patches_.data()};
    made.count = patches_.size();
    return made;
  }
  std::vector<unsigned char>& bytes() { return bytes_; }

 private:
  void add(const placed_tensor& tensor, std::uint64_t first, std::uint64_t rows) {
    map_patch patch{};
    patch.global_address =
        reinterpret_cast<std::uint64_t>(bytes_.data()) + tensor.begin + first * tensor.stride_bytes[0];
    patch.global_dim[0] = tensor.dim[0];
    patch.global_dim[1] = rows;
    patch.global_stride_bytes[0] = tensor.stride_bytes[0];
    patches_.push_back(patch);
  }

  std::vector<unsigned char> bytes_;
  std::vector<map_patch> patches_;
  tensor_batch described_;
};

std::uint64_t differing_bytes(const std::vector<unsigned char>& a, const std::vector<unsigned char>& b) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < a.size(); ++i) wrong += a[i] != b[i];
  return wrong;
}

bool is_turned(const quantize_values& values) {
  return values.block == scale_block::block_128x1;
}

/// Quantizes 128 rows of the first tensor again on the host. Returns the bytes that differ.
std::uint64_t count_wrong_quantized(const device_batch& source, const device_batch& made, const device_batch& scales,
                                    const quantize_values& values, std::uint64_t first) {
  host_copy from(source);
  host_copy to(made);
  host_copy factors(scales);
  const std::vector<unsigned char> found = to.bytes();
  const std::vector<unsigned char> found_scales = factors.bytes();
  const std::uint64_t rows = std::min<std::uint64_t>(128, source.tensors()[0].dim[1] - first);
  from.keep_rows(source.tensors()[0], first, rows);
  if (is_turned(values)) {
    to.keep_columns(made.tensors()[0], first, rows);
  } else {
    to.keep_rows(made.tensors()[0], first, rows);
  }
  const bool is_high = values.block >= scale_block::block_128x128;
  factors.keep_rows(scales.tensors()[0], is_high ? first / 128 : first, is_high ? 1 : rows);
  require(ragged::quantize(from.described(), to.described(), factors.described(), values, {on_host{}}));
  return differing_bytes(found, to.bytes()) + differing_bytes(found_scales, factors.bytes());
}

std::vector<placed_tensor> scales_of(std::vector<placed_tensor> tensors, const quantize_values& values) {
  for (placed_tensor& tensor : tensors) {
    if (values.block == scale_block::row) {
      tensor.dim[0] = 1;
    } else if (!is_turned(values)) {
      tensor.dim[0] = (tensor.dim[0] + 127) / 128;
    }
    if (values.block >= scale_block::block_128x128) tensor.dim[1] = (tensor.dim[1] + 127) / 128;
    if (values.transposed_scales) std::swap(tensor.dim[0], tensor.dim[1]);
  }
  return tensors;
}

std::vector<placed_tensor> turned(std::vector<placed_tensor> tensors) {
  for (placed_tensor& tensor : tensors) std::swap(tensor.dim[0], tensor.dim[1]);
  return tensors;
}

const char* name_of(scale_block block) {
  switch (block) {
    case scale_block::row: return "row";
    case scale_block::block_1x128: return "1 x 128";
    default: return "128 x 128";
  }
}

void add_quantize(ragged_table& table, const ragged_meter& meter, const std::vector<placed_tensor>& tensors) {
  const device_batch source = noise(tensors);
  const device_batch made(tensors, 1, 2, {16, 0, 0});
  for (const scale_block block : {scale_block::row, scale_block::block_1x128, scale_block::block_128x128}) {
    for (const bool is_transposed : {false, true}) {
      const quantize_values values{value_type::bf16, value_type::f8_e4m3, block, false, is_transposed};
      if (is_transposed && block != scale_block::block_1x128) continue;
      const device_batch scales(scales_of(tensors, values), 4, 2, {16, 0, 0});
      const std::uint64_t moved = source.bytes() + made.bytes() + scales.bytes();
      const double copy_rate = meter.copy_rate(moved / 2);
      const bool is_large = moved > 100'000'000;
      table.add({fmt::format("quantize {}{}, {} of {} x {}", name_of(block), is_transposed ? " transposed" : "",
                             tensors.size(), tensors[0].dim[1], tensors[0].dim[0]),
                 tensors.size(), 2, moved,
                 [&, values](const ragged::run& with) {
                   return ragged::quantize(source.described(), made.described(), scales.described(), values, with);
                 },
                 [&, values] {
                   const std::uint64_t last = (tensors[0].dim[1] - 1) / 128 * 128;
                   if (values.transposed_scales) return std::uint64_t{0};  // the tests compare these
                   return count_wrong_quantized(source, made, scales, values, 0) +
                          count_wrong_quantized(source, made, scales, values, last);
                 },
                 [&] {
                   made.memory().fill(wrong_byte);
                   scales.memory().fill(wrong_byte);
                 }},
                copy_rate, is_large ? ragged_goal{text(0.9 * copy_rate, 0), 0.9 * copy_rate} : ragged_goal{"-", 0});
    }
  }
}

/// Compares quantizing columns in one pass with the two passes that do the same. Both rates count
/// the bytes that one pass moves.
void add_quantized_columns(ragged_table& table, const ragged_meter& meter, const std::vector<placed_tensor>& tensors) {
  const device_batch source = noise(tensors);
  const device_batch made(turned(tensors), 1, 2, {16, 0, 0});
  const device_batch between(turned(tensors), 2, 2, {16, 0, 0});
  const quantize_values columns{value_type::bf16, value_type::f8_e4m3, scale_block::block_128x1};
  const quantize_values rows{value_type::bf16, value_type::f8_e4m3, scale_block::block_1x128, false, true};
  const device_batch scales(scales_of(tensors, columns), 4, 2, {16, 0, 0});
  const std::uint64_t moved = source.bytes() + made.bytes() + scales.bytes();
  const double copy_rate = meter.copy_rate(moved / 2);
  const auto add = [&](const char* name, const ragged_goal& goal, const ragged_call& call) {
    table.add({fmt::format("{}, {} of {} x {}", name, tensors.size(), tensors[0].dim[1], tensors[0].dim[0]),
               tensors.size(), 2, moved, call,
               [&] {
                 const std::uint64_t last = (tensors[0].dim[1] - 1) / 128 * 128;
                 return count_wrong_quantized(source, made, scales, columns, 0) +
                        count_wrong_quantized(source, made, scales, columns, last);
               },
               [&] {
                 made.memory().fill(wrong_byte);
                 scales.memory().fill(wrong_byte);
               }},
              copy_rate, goal);
  };
  const bool is_large = moved > 100'000'000;
  add("quantize 128 x 1", is_large ? ragged_goal{text(0.9 * copy_rate, 0), 0.9 * copy_rate} : ragged_goal{"-", 0},
      [&](const ragged::run& with) {
        return ragged::quantize(source.described(), made.described(), scales.described(), columns, with);
      });
  add("transpose, then quantize 1 x 128", {"-", 0}, [&](const ragged::run& with) {
    const result<void> transposed = ragged::transpose(source.described(), between.described(), with);
    if (!transposed) return transposed;
    return ragged::quantize(between.described(), made.described(), scales.described(), rows, with);
  });
}

void add_column_sums(ragged_table& table, const ragged_meter& meter, const std::vector<placed_tensor>& tensors) {
  const device_batch source = noise(tensors);
  std::vector<placed_tensor> one_row = tensors;
  for (placed_tensor& tensor : one_row) tensor.dim[1] = 1;
  const device_batch sums(one_row, 4, 2, {16, 0, 0});
  const std::uint64_t moved = source.bytes() + sums.bytes();
  table.add(
      {fmt::format("column_sums, {} of {} x {}", tensors.size(), tensors[0].dim[1], tensors[0].dim[0]), tensors.size(),
       2, moved,
       [&](const ragged::run& with) {
         return ragged::column_sums(source.described(), value_type::bf16, sums.described(), value_type::f32, with);
       },
       [&] {
         host_copy from(source);
         host_copy to(sums);
         const std::vector<unsigned char> found = to.bytes();
         require(ragged::column_sums(from.described(), value_type::bf16, to.described(), value_type::f32, {on_host{}}));
         return differing_bytes(found, to.bytes());
       },
       [&] { sums.memory().fill(wrong_byte); }},
      meter.copy_rate(moved / 2), {"-", 0});
}

}  // namespace

void print_quantize(const ragged_meter& meter) {
  ragged_table table("Quantizing and sums of columns, bf16", "memory", meter);
  add_quantize(table, meter, matrices(1, 16384, 7168));
  add_quantize(table, meter, matrices(1, 16384, 4096));
  add_quantize(table, meter, matrices(64, 256, 7168));
  add_quantize(table, meter, matrices(1, 8, 7168));
  add_quantized_columns(table, meter, matrices(1, 32768, 4096));
  add_quantized_columns(table, meter, matrices(1, 32768, 7168));
  add_quantized_columns(table, meter, matrices(32, 1024, 7168));
  add_quantized_columns(table, meter, matrices(128, 128, 2048));
  add_column_sums(table, meter, matrices(1, 16384, 4096));
  add_column_sums(table, meter, matrices(1, 1 << 20, 64));
  add_column_sums(table, meter, matrices(1024, 16, 4096));
  add_column_sums(table, meter, matrices(64, 256, 7168));
  table.print();
}

}  // namespace tmap::apps::bench
