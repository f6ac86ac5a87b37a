// SPDX-License-Identifier: Apache-2.0
#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t top_of_addresses = std::uint64_t{1} << 57;

class case_list {
 public:
  template <class Spec, class Change>
  void add(rule id, const char* what, Spec spec, const device_limits& limits, const Change& change) {
    change(spec);
    cases_.push_back({id, what, spec, limits});
  }

  template <class Change>
  void tiled(rule id, const char* what, const Change& change) {
    add(id, what, plain_spec(), hopper_limits(), change);
  }

  template <class Change>
  void interleaved(rule id, const char* what, interleave layout, const Change& change) {
    add(id, what, interleaved_spec(layout), hopper_limits(), change);
  }

  template <class Change>
  void packed(rule id, const char* what, element_type type, const Change& change) {
    add(id, what, packed_type_spec(type), blackwell_limits(), change);
  }

  template <class Change>
  void im2col(rule id, const char* what, const Change& change) {
    add(id, what, plain_im2col_spec(), hopper_limits(), change);
  }

  template <class Change>
  void wide(rule id, const char* what, const Change& change) {
    add(id, what, plain_im2col_wide_spec(), blackwell_limits(), change);
  }

  std::vector<rule_case> take() { return std::move(cases_); }

 private:
  std::vector<rule_case> cases_;
};

void add_type_and_rank(case_list& cases) {
  cases.tiled(rule::t02_element_type, "a packed type on Hopper", [](auto& s) { s.type = element_type::u4_align8; });
  cases.tiled(rule::t02_element_type, "no type at all", [](auto& s) { s.type = element_type{16}; });
  cases.tiled(rule::t02_element_type, "no type, all ones", [](auto& s) { s.type = element_type{~0u}; });
  cases.add(rule::t02_element_type, "no type of Blackwell", plain_spec(), blackwell_limits(),
            [](auto& s) { s.type = element_type{element_type_count}; });
  cases.tiled(rule::t03_rank, "rank 0", [](auto& s) { s.rank = 0; });
  cases.tiled(rule::t03_rank, "rank 6", [](auto& s) {
    s.rank = 6;
    for (std::uint32_t axis = 3; axis < max_rank; ++axis) s.global_dim[axis] = s.box_dim[axis] = 1;
  });
  cases.interleaved(rule::t04_interleave_rank, "rank 2", interleave::bytes_16, [](auto& s) { s.rank = 2; });
  cases.interleaved(rule::t04_interleave_rank, "rank 1", interleave::bytes_32, [](auto& s) { s.rank = 1; });
}

void add_address(case_list& cases) {
  cases.tiled(rule::t05_address_null, "null", [](auto& s) { s.global_address = 0; });
  cases.tiled(rule::t06_address_multiple_of_16, "8 past a multiple", [](auto& s) { s.global_address += 8; });
  cases.tiled(rule::t06_address_multiple_of_16, "1 past a multiple", [](auto& s) { s.global_address += 1; });
  cases.interleaved(rule::t07_address_interleave_32, "a multiple of 16 only", interleave::bytes_32,
                    [](auto& s) { s.global_address += 16; });
  cases.packed(rule::t08_address_packed_type, "a multiple of 16 only", element_type::u4_align16,
               [](auto& s) { s.global_address += 16; });
  cases.packed(rule::t08_address_packed_type, "a multiple of 16 only, 6 bits", element_type::u6_align16,
               [](auto& s) { s.global_address += 16; });
  cases.tiled(rule::t33_address_range, "first address past the end",
              [](auto& s) { s.global_address = top_of_addresses; });
  cases.tiled(rule::t33_address_range, "top bit", [](auto& s) { s.global_address = std::uint64_t{1} << 63; });
  cases.tiled(rule::t34_extent_range, "ends past the last address",
              [](auto& s) { s.global_address = top_of_addresses - 16; });
}

void add_dims_and_strides(case_list& cases) {
  cases.tiled(rule::t09_global_dim_range, "dim 0", [](auto& s) { s.global_dim[1] = 0; });
  cases.tiled(rule::t09_global_dim_range, "dim 2^32 + 1", [](auto& s) { s.global_dim[2] = (1ull << 32) + 1; });
  cases.tiled(rule::t36_global_dim_copied, "dim 2^31 + 1", [](auto& s) { s.global_dim[2] = (1ull << 31) + 1; });
  cases.tiled(rule::t36_global_dim_copied, "dim 2^32", [](auto& s) { s.global_dim[2] = 1ull << 32; });
  cases.packed(rule::t10_global_dim_packed_type, "64", element_type::u4_align16, [](auto& s) { s.global_dim[0] = 64; });
  cases.packed(rule::t11_global_dim_even, "odd", element_type::u4_align8, [](auto& s) { s.global_dim[0] = 63; });
  cases.tiled(rule::t13_stride_multiple_of_16, "8 past", [](auto& s) { s.global_stride_bytes[1] += 8; });
  cases.tiled(rule::t13_stride_multiple_of_16, "1 past", [](auto& s) { s.global_stride_bytes[1] += 1; });
  cases.tiled(rule::t14_stride_range, "2^40", [](auto& s) { s.global_stride_bytes[1] = 1ull << 40; });
  cases.interleaved(rule::t15_stride_multiple_of_32, "a multiple of 16 only", interleave::bytes_32,
                    [](auto& s) { s.global_stride_bytes[1] += 16; });
  cases.packed(rule::t15_stride_multiple_of_32, "a multiple of 16 only, 6 bits", element_type::u6_align16,
               [](auto& s) { s.global_stride_bytes[1] += 16; });
  cases.tiled(rule::t16_stride_overlap, "rows overlap", [](auto& s) { s.global_stride_bytes[0] = 16; });
  cases.tiled(rule::t16_stride_overlap, "broadcast", [](auto& s) { s.global_stride_bytes[1] = 0; });
}

void add_box(case_list& cases) {
  cases.tiled(rule::t17_box_dim_range, "box 0", [](auto& s) { s.box_dim[1] = 0; });
  cases.tiled(rule::t17_box_dim_range, "box 257", [](auto& s) { s.box_dim[1] = 257; });
  cases.tiled(rule::t18_inner_box_multiple_of_16, "12 bytes", [](auto& s) { s.box_dim[0] = 3; });
  cases.interleaved(rule::t18_inner_box_multiple_of_16, "12 bytes, interleaved", interleave::bytes_16,
                    [](auto& s) { s.box_dim[0] = 3; });
  cases.im2col(rule::t18_inner_box_multiple_of_16, "3 channels", [](auto& s) { s.channels_per_pixel = 3; });
  cases.packed(rule::t19_inner_box_packed_type, "64", element_type::u4_align16, [](auto& s) { s.box_dim[0] = 64; });
  cases.tiled(rule::t20_element_stride_range, "step 0", [](auto& s) { s.element_stride[1] = 0; });
  cases.tiled(rule::t20_element_stride_range, "step 9", [](auto& s) { s.element_stride[1] = 9; });
  cases.tiled(rule::t20_element_stride_range, "inner step 0", [](auto& s) { s.element_stride[0] = 0; });
  cases.interleaved(rule::t20_element_stride_range, "inner step 9, interleaved", interleave::bytes_16,
                    [](auto& s) { s.element_stride[0] = 9; });
  cases.tiled(rule::t35_tile_fits_shared_memory, "228 KiB", [](auto& s) {
    s.box_dim[1] = 32;
    s.box_dim[2] = 57;
  });
  cases.interleaved(rule::t37_box_bytes, "many slices of which one is copied", interleave::bytes_16,
                    [](auto& s) { s.box_dim[1] = 256; });
}

void add_modes(case_list& cases) {
  cases.tiled(rule::t21_interleave_value, "3", [](auto& s) { s.interleave = interleave{3}; });
  cases.packed(rule::t21_interleave_value, "16 bytes for 6 bits", element_type::u6_align16, [](auto& s) {
    s.interleave = interleave::bytes_16;
    s.global_stride_bytes[0] = 2048;
    s.global_stride_bytes[1] = 65536;
  });
  cases.tiled(rule::t22_inner_box_swizzle_32, "128 bytes", [](auto& s) { s.swizzle = swizzle::bytes_32; });
  cases.tiled(rule::t23_inner_box_swizzle_64, "128 bytes", [](auto& s) { s.swizzle = swizzle::bytes_64; });
  cases.tiled(rule::t24_inner_box_swizzle_128, "144 bytes", [](auto& s) {
    s.swizzle = swizzle::bytes_128;
    s.box_dim[0] = 36;
  });
  cases.interleaved(rule::t25_interleave_32_swizzle, "none", interleave::bytes_32,
                    [](auto& s) { s.swizzle = swizzle::none; });
  cases.interleaved(rule::t25_interleave_32_swizzle, "128 bytes", interleave::bytes_32,
                    [](auto& s) { s.swizzle = swizzle::bytes_128; });
  cases.packed(rule::t26_swizzle_u6, "flipping atoms", element_type::u6_align16,
               [](auto& s) { s.swizzle = swizzle::bytes_128_atom_32_flip_8; });
  cases.packed(rule::t27_swizzle_u4, "64 bytes", element_type::u4_align16,
               [](auto& s) { s.swizzle = swizzle::bytes_64; });
  cases.tiled(rule::t28_swizzle_value, "an atom on Hopper", [](auto& s) { s.swizzle = swizzle::bytes_128_atom_32; });
  cases.tiled(rule::t28_swizzle_value, "7", [](auto& s) { s.swizzle = swizzle{7}; });
  cases.add(rule::t28_swizzle_value, "7 on Blackwell", plain_spec(), blackwell_limits(),
            [](auto& s) { s.swizzle = swizzle{7}; });
  cases.tiled(rule::t29_l2_promotion_value, "4", [](auto& s) { s.l2_promotion = l2_promotion{4}; });
  cases.tiled(rule::t30_oob_fill, "2", [](auto& s) { s.oob_fill = oob_fill{2}; });
  cases.tiled(rule::t30_oob_fill, "NaN for an integer type", [](auto& s) {
    s.type = element_type::i32;
    s.oob_fill = oob_fill::nan;
  });
}

void add_im2col(case_list& cases) {
  cases.im2col(rule::i01_rank, "rank 2", [](auto& s) { s.tensor.rank = 2; });
  cases.im2col(rule::i01_rank, "rank 6", [](auto& s) {
    s.tensor.rank = 6;
    s.tensor.global_dim[4] = 1;
    s.lower_corner[2] = s.upper_corner[2] = 0;
  });
  cases.im2col(rule::i02_lower_corner_range, "-129", [](auto& s) { s.lower_corner[1] = -129; });
  cases.im2col(rule::i03_upper_corner_range, "128", [](auto& s) { s.upper_corner[0] = 128; });
  cases.im2col(rule::i04_box_area, "nothing between the corners", [](auto& s) { s.lower_corner[0] = 31; });
  cases.im2col(rule::i04_box_area, "nothing between the corners, interleaved", [](auto& s) {
    s.tensor.interleave = interleave::bytes_16;
    s.tensor.global_dim[0] = 4;
    s.lower_corner[0] = 4;
  });
  cases.im2col(rule::i05_channels_range, "0", [](auto& s) { s.channels_per_pixel = 0; });
  cases.im2col(rule::i05_channels_range, "260", [](auto& s) { s.channels_per_pixel = 260; });
  cases.im2col(rule::i06_pixels_range, "0", [](auto& s) { s.pixels_per_column = 0; });
  cases.im2col(rule::i06_pixels_range, "1025", [](auto& s) { s.pixels_per_column = 1025; });
}

void add_im2col_wide(case_list& cases) {
  cases.add(rule::w01_compute_capability, "Hopper", plain_im2col_wide_spec(), hopper_limits(), [](auto&) {});
  cases.wide(rule::w02_corner_range, "lower", [](auto& s) { s.lower_corner_w = -32769; });
  cases.wide(rule::w02_corner_range, "upper", [](auto& s) { s.upper_corner_w = 32768; });
  cases.wide(rule::i04_box_area, "nothing between the corners, wide", [](auto& s) { s.lower_corner_w = 31; });
  cases.wide(rule::w03_swizzle, "none", [](auto& s) { s.tensor.swizzle = swizzle::none; });
  cases.wide(rule::w04_interleave, "16 bytes", [](auto& s) {
    s.tensor.interleave = interleave::bytes_16;
    s.tensor.global_dim[0] = 16;
  });
  cases.wide(rule::w05_mode, "2", [](auto& s) { s.mode = im2col_wide_mode{2}; });
}

}  // namespace

tensor_spec plain_spec() {
  return {.global_address = 0x10000,
          .type = element_type::f32,
          .rank = 3,
          .global_dim = {64, 32, 16},
          .global_stride_bytes = {256, 8192},
          .box_dim = {32, 8, 4}};
}

tensor_spec interleaved_spec(interleave layout) {
  tensor_spec spec = plain_spec();
  spec.global_stride_bytes[0] = 2048;
  spec.global_stride_bytes[1] = 65536;
  spec.box_dim[2] = 8;
  spec.interleave = layout;
  spec.swizzle = layout == interleave::bytes_32 ? swizzle::bytes_32 : swizzle::none;
  return spec;
}

tensor_spec packed_type_spec(element_type type) {
  tensor_spec spec = plain_spec();
  spec.type = type;
  spec.global_dim[0] = 128;
  spec.box_dim[0] = 128;
  return spec;
}

im2col_spec plain_im2col_spec() {
  im2col_spec spec;
  spec.tensor = plain_spec();
  spec.tensor.rank = 4;
  spec.tensor.global_dim[3] = 4;
  spec.tensor.global_stride_bytes[2] = 131072;
  for (int axis = 0; axis < 2; ++axis) {
    spec.lower_corner[axis] = -1;
    spec.upper_corner[axis] = -1;
  }
  spec.channels_per_pixel = 32;
  spec.pixels_per_column = 64;
  return spec;
}

im2col_wide_spec plain_im2col_wide_spec() {
  im2col_wide_spec spec;
  spec.tensor = plain_im2col_spec().tensor;
  spec.tensor.swizzle = swizzle::bytes_64;
  spec.lower_corner_w = -1;
  spec.upper_corner_w = -1;
  spec.channels_per_pixel = 16;
  spec.pixels_per_column = 64;
  return spec;
}

std::vector<rule_case> all_rule_cases() {
  case_list cases;
  add_type_and_rank(cases);
  add_address(cases);
  add_dims_and_strides(cases);
  add_box(cases);
  add_modes(cases);
  add_im2col(cases);
  add_im2col_wide(cases);
  return cases.take();
}

}  // namespace tmap::testing
