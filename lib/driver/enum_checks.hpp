// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include <cuda.h>

#include <cstdint>

// Checks that our map has the size of CUDA's and at least its alignment, and that our enumerators
// have CUDA's numbers. So values go to the driver without a table.

namespace tmap::driver {

static_assert(sizeof(tensor_map) == sizeof(CUtensorMap));
static_assert(alignof(tensor_map) >= alignof(CUtensorMap) && alignof(tensor_map) % alignof(CUtensorMap) == 0);

template <class Ours, class Vendor>
constexpr bool same_number(Ours ours, Vendor vendor) {
  return static_cast<std::uint32_t>(ours) == static_cast<std::uint32_t>(vendor);
}

static_assert(same_number(element_type::u8, CU_TENSOR_MAP_DATA_TYPE_UINT8));
static_assert(same_number(element_type::u16, CU_TENSOR_MAP_DATA_TYPE_UINT16));
static_assert(same_number(element_type::u32, CU_TENSOR_MAP_DATA_TYPE_UINT32));
static_assert(same_number(element_type::i32, CU_TENSOR_MAP_DATA_TYPE_INT32));
static_assert(same_number(element_type::u64, CU_TENSOR_MAP_DATA_TYPE_UINT64));
static_assert(same_number(element_type::i64, CU_TENSOR_MAP_DATA_TYPE_INT64));
static_assert(same_number(element_type::f16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
static_assert(same_number(element_type::f32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32));
static_assert(same_number(element_type::f64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64));
static_assert(same_number(element_type::bf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
static_assert(same_number(element_type::f32_ftz, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ));
static_assert(same_number(element_type::tf32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32));
static_assert(same_number(element_type::tf32_ftz, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ));
static_assert(same_number(element_type::u4_align8, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B));
static_assert(same_number(element_type::u4_align16, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B));
static_assert(same_number(element_type::u6_align16, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B));

static_assert(same_number(interleave::none, CU_TENSOR_MAP_INTERLEAVE_NONE));
static_assert(same_number(interleave::bytes_16, CU_TENSOR_MAP_INTERLEAVE_16B));
static_assert(same_number(interleave::bytes_32, CU_TENSOR_MAP_INTERLEAVE_32B));

static_assert(same_number(swizzle::none, CU_TENSOR_MAP_SWIZZLE_NONE));
static_assert(same_number(swizzle::bytes_32, CU_TENSOR_MAP_SWIZZLE_32B));
static_assert(same_number(swizzle::bytes_64, CU_TENSOR_MAP_SWIZZLE_64B));
static_assert(same_number(swizzle::bytes_128, CU_TENSOR_MAP_SWIZZLE_128B));
static_assert(same_number(swizzle::bytes_128_atom_32, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B));
static_assert(same_number(swizzle::bytes_128_atom_32_flip_8, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B));
static_assert(same_number(swizzle::bytes_128_atom_64, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B));

static_assert(same_number(l2_promotion::none, CU_TENSOR_MAP_L2_PROMOTION_NONE));
static_assert(same_number(l2_promotion::bytes_64, CU_TENSOR_MAP_L2_PROMOTION_L2_64B));
static_assert(same_number(l2_promotion::bytes_128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B));
static_assert(same_number(l2_promotion::bytes_256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B));

static_assert(same_number(oob_fill::zero, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
static_assert(same_number(oob_fill::nan, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA));

static_assert(same_number(im2col_wide_mode::w, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W));
static_assert(same_number(im2col_wide_mode::w128, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128));

}  // namespace tmap::driver
