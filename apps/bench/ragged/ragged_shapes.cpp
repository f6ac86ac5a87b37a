// SPDX-License-Identifier: Apache-2.0
// Measures the operations that rearrange elements: pad, unpad, transpose.
#include <cmath>
#include <string>
#include <vector>

#include "apps/bench/ragged/ragged_batch.hpp"
#include "apps/bench/ragged/ragged_case.hpp"
#include "apps/bench/ragged/ragged_peers.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint64_t sequences = 512;
constexpr std::uint64_t features = 512;
constexpr std::uint64_t longest = 4096;

std::vector<placed_tensor> sequence_tensors() {
  random_sizes random(5);
  std::vector<placed_tensor> tensors(sequences);
  for (placed_tensor& tensor : tensors) {
    tensor.dim[0] = features;
    tensor.dim[1] = random.between(1, longest);
  }
  return tensors;
}

std::vector<placed_tensor> dense_tensors() {
  std::vector<placed_tensor> tensors(sequences);
  for (placed_tensor& tensor : tensors) {
    tensor.dim[0] = features;
    tensor.dim[1] = longest;
  }
  return tensors;
}

dense_batch dense_of(const device_batch& batch) {
  dense_batch dense;
  dense.address = batch.address(0);
  dense.dim[0] = features;
  dense.dim[1] = longest;
  return dense;
}

/// Returns 4,096 matrices of 16 to 256 KiB whose sides differ by a factor of two at most.
std::vector<placed_tensor> matrices(std::uint32_t element_bytes, std::uint64_t multiple) {
  random_sizes random(7);
  std::vector<placed_tensor> tensors(4096);
  for (placed_tensor& tensor : tensors) {
    const double elements = random.log_between(16384, 262144) / element_bytes;
    const double ratio = random.log_between(0.5, 2);
    const double sides[]{std::sqrt(elements * ratio), std::sqrt(elements / ratio)};
    for (std::uint32_t axis = 0; axis < 2; ++axis) {
      const auto side = static_cast<std::uint64_t>(std::ceil(sides[axis]));
      tensor.dim[axis] = (side + multiple - 1) / multiple * multiple;
    }
  }
  return tensors;
}

/// Converts interleaved pixels of three bytes to planes, or planes to pixels.
std::vector<placed_tensor> pictures(bool to_planes) {
  random_sizes random(9);
  std::vector<placed_tensor> tensors(512);
  for (placed_tensor& tensor : tensors) {
    tensor.dim[to_planes ? 0 : 1] = 3;
    tensor.dim[to_planes ? 1 : 0] = random.between(65536, 262144);
  }
  return tensors;
}

std::vector<placed_tensor> swapped(std::vector<placed_tensor> tensors) {
  for (placed_tensor& tensor : tensors) std::swap(tensor.dim[0], tensor.dim[1]);
  return tensors;
}

void add_transpose(ragged_table& table, double copy_rate, const std::string& name,
                   const std::vector<placed_tensor>& tensors, std::uint32_t element_bytes, double share) {
  const device_batch source(tensors, element_bytes, 2, {16, 0, 0});
  const device_batch destination(swapped(tensors), element_bytes, 2, {16, 0, 0});
  fill_with_noise(source.memory());
  const ragged_case one{
      name,
      tensors.size(),
      2,
      2 * source.bytes(),
      [&](const ragged::run& with) { return ragged::transpose(source.described(), destination.described(), with); },
      [&] { return count_differences(source.columns(), destination.columns(), true); },
      [&] { destination.memory().fill(0x5a); }};
  const double goal = share * copy_rate;
  table.add(one, copy_rate, {goal == 0 ? "-" : text(goal, 0), goal});
}

}  // namespace

void print_pad(const ragged_meter& meter) {
  const device_batch ragged_side(sequence_tensors(), 2, 2, {16, 0, 0});
  const device_batch dense_side(dense_tensors(), 2, 2, {16, 0, 0});
  const dense_batch dense = dense_of(dense_side);
  const double copy_rate = meter.copy_rate(std::uint64_t{1} << 30);
  const double goal = 0.9 * copy_rate;
  ragged_table table("Pad and unpad, bf16, 512 sequences of 1 to 4,096 by 512", "cudaMemcpyAsync", meter);
  fill_with_noise(ragged_side.memory());
  const auto differences = [&] { return count_differences(ragged_side.columns(), dense_side.columns(), false); };
  table.add({"pad", sequences, 2, ragged_side.bytes() + dense_side.bytes(),
             [&](const ragged::run& with) { return ragged::pad(ragged_side.described(), dense, {}, with); },
             differences, [&] { dense_side.memory().fill(0x5a); }},
            copy_rate, {text(goal, 0), goal});
  fill_with_noise(dense_side.memory());
  table.add({"unpad", sequences, 2, 2 * ragged_side.bytes(),
             [&](const ragged::run& with) { return ragged::unpad(dense, ragged_side.described(), with); }, differences,
             [&] { ragged_side.memory().fill(0x5a); }},
            copy_rate, {text(goal, 0), goal});
  table.print();
}

void print_transpose(const ragged_meter& meter) {
  const double copy_rate = meter.copy_rate(std::uint64_t{1} << 28);
  ragged_table table("Transpose", "cudaMemcpyAsync", meter);
  add_transpose(table, copy_rate, "4,096 matrices of 16-256 KiB, f32", matrices(4, 4), 4, 0.85);
  add_transpose(table, copy_rate, "4,096 matrices of 16-256 KiB, bf16", matrices(2, 8), 2, 0.85);
  add_transpose(table, copy_rate, "the same, odd sizes, f32", matrices(4, 1), 4, 0);
  add_transpose(table, copy_rate, "the same, odd sizes, bf16", matrices(2, 1), 2, 0);
  add_transpose(table, copy_rate, "512 pictures, 3 x n to n x 3, u8", pictures(true), 1, 0);
  add_transpose(table, copy_rate, "512 pictures, n x 3 to 3 x n, u8", pictures(false), 1, 0);
  table.print();
}

}  // namespace tmap::apps::bench
