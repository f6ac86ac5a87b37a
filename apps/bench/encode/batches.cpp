// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/encode/batches.hpp"

#include <iterator>

namespace tmap::apps::bench {
namespace {

constexpr std::uint32_t boxes[max_rank] = {16, 4, 2, 1, 1};
constexpr std::uint64_t row_alignment = 16;

map_patch make_patch(std::uint64_t i) {
  constexpr std::uint64_t address_step = 4096;
  map_patch patch{};
  patch.global_address = first_address + i * address_step;
  patch.global_dim[0] = 1 + i * 7 % 1000;
  std::uint64_t stride = (patch.global_dim[0] * sizeof(float) + row_alignment - 1) / row_alignment * row_alignment;
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
    patch.global_dim[axis] = 1 + (i * (2 * axis + 1) + axis) % 13;
    patch.global_stride_bytes[axis - 1] = stride;
    stride *= patch.global_dim[axis];
  }
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    patch.box_dim[axis] = boxes[axis];
    patch.element_stride[axis] = 1;
  }
  return patch;
}

}  // namespace

map_template make_base(const patch_case& shape) {
  const std::uint64_t dims[max_rank] = {64, 8, 4, 3, 2};
  const tensor_spec spec =
      packed_spec(element_type::f32, first_address, {dims, shape.rank}, {std::data(boxes), shape.rank});
  return value_of(make_template(spec, shape.fields));
}

std::vector<map_patch> make_patches(std::uint64_t count) {
  std::vector<map_patch> patches(count);
  for (std::uint64_t i = 0; i < count; ++i) patches[i] = make_patch(i);
  return patches;
}

batch::batch(const patch_case& shape, const std::vector<map_patch>& patches)
    : base_{make_base(shape)}, patches_{patches}, slots_{patches.size()} {}

void batch::encode(const encode_run& run) const {
  require(encode_batch(base_, source(), slots(), count(), run));
}

}  // namespace tmap::apps::bench
