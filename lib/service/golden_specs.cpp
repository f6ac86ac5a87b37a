// SPDX-License-Identifier: Apache-2.0
#include <initializer_list>

#include "lib/service/self_test.hpp"

namespace tmap::service {
namespace {

constexpr std::uint64_t address = std::uint64_t{1} << 32;
constexpr std::uint64_t longest_dim = std::uint64_t{1} << 31;
constexpr std::uint64_t longest_stride = (std::uint64_t{1} << 40) - 32;

struct extents {
  std::initializer_list<std::uint64_t> dims;
  std::initializer_list<std::uint64_t> strides;
  std::initializer_list<std::uint32_t> box;
};

tensor_spec tensor(element_type type, const extents& of) {
  tensor_spec spec;
  spec.global_address = address;
  spec.type = type;
  for (const std::uint64_t dim : of.dims) spec.global_dim[spec.rank++] = dim;
  std::uint32_t index = 0;
  for (const std::uint64_t stride : of.strides) spec.global_stride_bytes[index++] = stride;
  index = 0;
  for (const std::uint32_t box : of.box) spec.box_dim[index++] = box;
  return spec;
}

tensor_spec with_modes(tensor_spec spec, swizzle mode, l2_promotion promotion, oob_fill fill = oob_fill::zero) {
  spec.swizzle = mode;
  spec.l2_promotion = promotion;
  spec.oob_fill = fill;
  return spec;
}

tensor_spec interleaved(tensor_spec spec, interleave mode, swizzle permutation) {
  spec.interleave = mode;
  spec.swizzle = permutation;
  return spec;
}

tensor_spec strided(tensor_spec spec, std::initializer_list<std::uint32_t> element_strides) {
  std::uint32_t axis = 0;
  for (const std::uint32_t stride : element_strides) spec.element_stride[axis++] = stride;
  return spec;
}

}  // namespace

std::vector<tensor_spec> golden_specs() {
  using enum element_type;
  return {
      tensor(u8, {{1}, {}, {16}}),
      tensor(f32, {{longest_dim}, {}, {256}}),
      with_modes(tensor(bf16, {{64, 128}, {128}, {64, 64}}), swizzle::bytes_128, l2_promotion::bytes_128),
      tensor(f64, {{1, 1}, {longest_stride}, {2, 1}}),
      with_modes(tensor(f16, {{100, 7, longest_dim}, {208, 1456}, {32, 8, 2}}), swizzle::bytes_64,
                 l2_promotion::bytes_64, oob_fill::nan),
      interleaved(tensor(u16, {{24, 5, 3}, {16, 384}, {8, 4, 1}}), interleave::bytes_16, swizzle::none),
      interleaved(tensor(u8, {{33, 3, 9, 2}, {32, 1056, 96}, {16, 2, 3, 1}}), interleave::bytes_32, swizzle::bytes_32),
      strided(with_modes(tensor(tf32, {{4, 3, 5, 7, 9}, {16, 48, 240, 1680}, {4, 3, 4, 1, 8}}), swizzle::none,
                         l2_promotion::none, oob_fill::nan),
              {1, 2, 3, 1, 8}),
      tensor(i32, {{2, 2, 2, 2, 2}, {longest_stride, longest_stride, longest_stride, longest_stride}, {4, 1, 1, 1, 2}}),
      with_modes(tensor(u64, {{11, 13, 17, 19}, {96, 1248, 21216}, {4, 3, 2, 1}}), swizzle::bytes_32,
                 l2_promotion::bytes_256),
      with_modes(tensor(f32_ftz, {{1000, 1}, {4000}, {256, 200}}), swizzle::none, l2_promotion::bytes_256,
                 oob_fill::nan),
      tensor(i64, {{longest_dim, longest_dim, 1}, {16, 32}, {2, 256, 1}}),
  };
}

}  // namespace tmap::service
