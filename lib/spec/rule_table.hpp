// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/rule_info.hpp>

namespace tmap::detail {

// The only place that words the rules. Messages are fmt format strings over {axis}, {found},
// {signed_found} (the same bits as a signed number) and {allowed}.

inline constexpr const char* tiled_page = "CUDA driver API, cuTensorMapEncodeTiled";
inline constexpr const char* im2col_page = "CUDA driver API, cuTensorMapEncodeIm2col";
inline constexpr const char* wide_page = "CUDA driver API, cuTensorMapEncodeIm2colWide";
inline constexpr const char* ptx_copy = "PTX ISA, cp.async.bulk.tensor";
inline constexpr const char* measured = "measured: docs/measurements/copy_engine_semantics.md";

inline constexpr severity fatal = severity::error;
inline constexpr severity unusual = severity::warning;
inline constexpr rule_stage in_spec = rule_stage::spec;
inline constexpr rule_stage by_type = rule_stage::type;
inline constexpr rule_stage in_call = rule_stage::encode_call;
inline constexpr rule_stage in_use = rule_stage::use;

inline constexpr rule_info rule_table[] = {
    // clang-format off
    {rule::t01_map_alignment, "T01", fatal, by_type, true,
     "The 128 bytes of the map lie at a multiple of 64 (tmap: 128).",
     "the map lies at {found:#x}, must be a multiple of {allowed}", tiled_page},
    {rule::t02_element_type, "T02", fatal, in_spec, true,
     "`type` is one of the 16 element types; the 4- and 6-bit types (13 to 15) need compute capability 10.0.",
     "type is {found}, must be from 0 to {allowed} on this GPU", tiled_page},
    {rule::t03_rank, "T03", fatal, in_spec, true, "`rank` is from 1 to 5.",
     "rank is {found}, must be from 1 to {allowed}", tiled_page},
    {rule::t04_interleave_rank, "T04", fatal, in_spec, true, "An interleaved tensor has at least 3 dimensions.",
     "rank is {found}, must be at least {allowed} with an interleave", tiled_page},
    {rule::t05_address_null, "T05", fatal, in_spec, false,
     "`global_address` is not null. The driver accepts null; the first load that touches element 0, or anything "
     "outside the tensor, is an illegal memory access.",
     "global_address is null", measured},
    {rule::t06_address_multiple_of_16, "T06", fatal, in_spec, true, "`global_address` is a multiple of 16.",
     "global_address is {found:#x}, must be a multiple of {allowed}", tiled_page},
    {rule::t07_address_interleave_32, "T07", fatal, in_spec, true,
     "With the 32-byte interleave `global_address` is a multiple of 32.",
     "global_address is {found:#x}, must be a multiple of {allowed} with the 32-byte interleave", tiled_page},
    {rule::t08_address_packed_type, "T08", fatal, in_spec, true,
     "For `u4_align16` and `u6_align16` `global_address` is a multiple of 32.",
     "global_address is {found:#x}, must be a multiple of {allowed} for this element type", tiled_page},
    {rule::t09_global_dim_range, "T09", fatal, in_spec, true, "Every `global_dim` is from 1 to 2^32.",
     "global_dim[{axis}] is {found}, must be from 1 to {allowed}", tiled_page},
    {rule::t10_global_dim_packed_type, "T10", fatal, in_spec, true,
     "For `u4_align16` and `u6_align16` `global_dim[0]` is a multiple of 128.",
     "global_dim[{axis}] is {found}, must be a multiple of {allowed} for this element type", tiled_page},
    {rule::t11_global_dim_even, "T11", fatal, in_spec, true, "For `u4_align8` `global_dim[0]` is even.",
     "global_dim[{axis}] is {found}, must be a multiple of {allowed} for this element type", tiled_page},
    {rule::t12_strides_present, "T12", fatal, by_type, true,
     "The driver gets an array of strides even for rank 1 (newer drivers refuse a null pointer).",
     "the array of strides is null", "https://github.com/NVIDIA/cccl/issues/1567"},
    {rule::t13_stride_multiple_of_16, "T13", fatal, in_spec, true,
     "Every `global_stride_bytes` is a multiple of 16. Zero is one: every row then reads row 0.",
     "global_stride_bytes[{axis}] is {found}, must be a multiple of {allowed}", tiled_page},
    {rule::t14_stride_range, "T14", fatal, in_spec, true, "Every `global_stride_bytes` is below 2^40.",
     "global_stride_bytes[{axis}] is {found}, must be below {allowed}", tiled_page},
    {rule::t15_stride_multiple_of_32, "T15", fatal, in_spec, true,
     "With the 32-byte interleave, and for `u4_align16` and `u6_align16`, every `global_stride_bytes` is a multiple "
     "of 32.",
     "global_stride_bytes[{axis}] is {found}, must be a multiple of {allowed} for this interleave or element type",
     tiled_page},
    {rule::t16_stride_overlap, "T16", unusual, in_spec, false,
     "Every stride steps past all that the lower dimensions reach. Shorter ones (0 among them) load as the arithmetic "
     "says; stores and reductions through them race.",
     "global_stride_bytes[{axis}] is {found}, shorter than the {allowed} bytes that the lower dimensions reach: "
     "elements share bytes", measured},
    {rule::t17_box_dim_range, "T17", fatal, in_spec, true, "Every `box_dim` is from 1 to 256.",
     "box_dim[{axis}] is {found}, must be from 1 to {allowed}", tiled_page},
    {rule::t18_inner_box_multiple_of_16, "T18", fatal, in_spec, true,
     "The inner box (`box_dim[0]`, or `channels_per_pixel` of an im2col map) times the element size is a multiple of "
     "16 bytes, interleaved or not.",
     "the inner box is {found} elements, must be a multiple of {allowed} (16 bytes)", tiled_page},
    {rule::t19_inner_box_packed_type, "T19", fatal, in_spec, true,
     "For `u4_align16` and `u6_align16` the inner box is 128 elements.",
     "the inner box is {found} elements, must be {allowed} for this element type", tiled_page},
    {rule::t20_element_stride_range, "T20", fatal, in_spec, true,
     "Every `element_stride` is from 1 to 8, also that of dimension 0, which has no effect without an interleave.",
     "element_stride[{axis}] is {found}, must be from 1 to {allowed}", tiled_page},
    {rule::t21_interleave_value, "T21", fatal, in_spec, true,
     "`interleave` is from 0 to 2, and 0 for `u6_align16`.",
     "interleave is {found}, must be at most {allowed} for this element type", tiled_page},
    {rule::t22_inner_box_swizzle_32, "T22", fatal, in_spec, true,
     "Without interleave, the 32-byte swizzle takes an inner box of at most 32 bytes.",
     "the inner box is {found} elements, the 32-byte swizzle takes at most {allowed}", tiled_page},
    {rule::t23_inner_box_swizzle_64, "T23", fatal, in_spec, true,
     "Without interleave, the 64-byte swizzle takes an inner box of at most 64 bytes.",
     "the inner box is {found} elements, the 64-byte swizzle takes at most {allowed}", tiled_page},
    {rule::t24_inner_box_swizzle_128, "T24", fatal, in_spec, true,
     "Without interleave, the 128-byte swizzles take an inner box of at most 128 bytes.",
     "the inner box is {found} elements, the 128-byte swizzle takes at most {allowed}", tiled_page},
    {rule::t25_interleave_32_swizzle, "T25", fatal, in_spec, false,
     "The 32-byte interleave goes with the 32-byte swizzle alone. The driver accepts every swizzle beside it, against "
     "its own documentation: nothing says what the bytes of such a tile are.",
     "swizzle is {found}, must be {allowed} (32 bytes) with the 32-byte interleave", tiled_page},
    {rule::t26_swizzle_u6, "T26", fatal, in_spec, true,
     "`u6_align16` goes with swizzle none, 128 bytes, and its 32- and 64-byte atoms.",
     "swizzle is {found}, must be 0, 3, 4 or 6 for this element type", tiled_page},
    {rule::t27_swizzle_u4, "T27", fatal, in_spec, true,
     "`u4_align16` goes with swizzle none, 128 bytes, and its 32-byte atom.",
     "swizzle is {found}, must be 0, 3 or 4 for this element type", tiled_page},
    {rule::t28_swizzle_value, "T28", fatal, in_spec, true,
     "`swizzle` is from 0 to 6; those with another atom (4 to 6) need compute capability 10.0.",
     "swizzle is {found}, must be from 0 to {allowed} on this GPU", tiled_page},
    {rule::t29_l2_promotion_value, "T29", fatal, in_spec, true, "`l2_promotion` is from 0 to 3.",
     "l2_promotion is {found}, must be from 0 to {allowed}", tiled_page},
    {rule::t30_oob_fill, "T30", fatal, in_spec, true,
     "`oob_fill` is 0 or 1, and 1 (NaN) only for floating-point types.",
     "oob_fill is {found}, must be at most {allowed} for this element type", tiled_page},
    {rule::t31_context_present, "T31", fatal, in_call, true, "The calling thread has a CUDA context.",
     "the calling thread has no CUDA context", tiled_page},
    {rule::t32_no_earlier_error, "T32", fatal, in_call, true,
     "No kernel that ran before broke the context: the encode call may answer with that kernel's error.",
     "an earlier kernel broke the CUDA context", "https://github.com/vllm-project/vllm/issues/13961"},
    {rule::t33_address_range, "T33", fatal, in_spec, true,
     "`global_address` lies within the GPU's 57-bit address range.",
     "global_address is {found:#x}, must be below {allowed:#x}", "measured: tests/driver"},
    {rule::t34_extent_range, "T34", fatal, in_spec, false,
     "The last byte of the tensor (address, plus the steps along every dimension, plus a row) lies within the address "
     "range. The driver looks at the address alone; no memory lies beyond the range for a copy to reach.",
     "the tensor ends at {found:#x}, must end at most at {allowed:#x}", "follows from T33"},
    {rule::t35_tile_fits_shared_memory, "T35", unusual, in_spec, false,
     "One tile fits the shared memory that a block can have.",
     "one tile takes {found} bytes of shared memory, a block has at most {allowed}", "CUDA programming guide"},
    {rule::t36_global_dim_copied, "T36", fatal, in_spec, false,
     "Every `global_dim` is at most 2^31. The driver accepts up to 2^32; the first copy is an illegal instruction.",
     "global_dim[{axis}] is {found}, the copy engine takes at most {allowed}", measured},
    {rule::t37_box_bytes, "T37", fatal, in_spec, true,
     "The bytes of one box as the driver counts them (the product of box_dim / element_stride, each rounded down, "
     "times the element size) are at most 228 KiB.",
     "one box counts {found} bytes, must be at most {allowed}", measured},
    {rule::t38_address_window, "T38", fatal, in_call, false,
     "Where the caller named address windows, every byte that a copy may touch (the tensor, its rows rounded up to 16 "
     "bytes) lies inside one of them. The driver knows no windows, nor which memory is the caller's.",
     "the bytes from {found:#x} on lie in none of the {allowed} address windows", "`encode_run`"},
    {rule::i01_rank, "I01", fatal, in_spec, true, "im2col: `rank` is from 3 to 5.",
     "rank is {found}, must be from 3 to {allowed} for im2col", im2col_page},
    {rule::i02_lower_corner_range, "I02", fatal, in_spec, true,
     "im2col: every `lower_corner` fits 16 bits (rank 3), 8 bits (rank 4) or 5 bits (rank 5), signed.",
     "lower_corner[{axis}] is {signed_found}, must be at least -{allowed} and below {allowed}", im2col_page},
    {rule::i03_upper_corner_range, "I03", fatal, in_spec, true,
     "im2col: every `upper_corner` fits 16 bits (rank 3), 8 bits (rank 4) or 5 bits (rank 5), signed.",
     "upper_corner[{axis}] is {signed_found}, must be at least -{allowed} and below {allowed}", im2col_page},
    {rule::i04_box_area, "I04", fatal, in_spec, true,
     "im2col: the bounding box [lower_corner, dim + upper_corner) is not empty along any spatial axis; the sum wraps "
     "at 32 bits.",
     "the bounding box has extent {signed_found} along spatial axis {axis}, must be at least {allowed}", im2col_page},
    {rule::i05_channels_range, "I05", fatal, in_spec, true, "im2col: `channels_per_pixel` is from 1 to 256.",
     "channels_per_pixel is {found}, must be from 1 to {allowed}", im2col_page},
    {rule::i06_pixels_range, "I06", fatal, in_spec, true,
     "im2col: `pixels_per_column` is from 1 to 1024 (ignored by the W128 mode).",
     "pixels_per_column is {found}, must be from 1 to {allowed}", im2col_page},
    {rule::w01_compute_capability, "W01", fatal, in_spec, false,
     "im2col-wide: the GPU has compute capability 10.0. The driver encodes such maps for older ones, too, which lack "
     "the modes that they are for.",
     "the compute capability times 10 is {found}, im2col-wide needs {allowed}", wide_page},
    {rule::w02_corner_range, "W02", fatal, in_spec, true, "im2col-wide: both W corners fit 16 bits, signed.",
     "a W corner is {signed_found}, must be at least -{allowed} and below {allowed}", wide_page},
    {rule::w03_swizzle, "W03", fatal, in_spec, true,
     "im2col-wide: `swizzle` is 64 bytes, 128 bytes, or 128 bytes with 32-byte atoms.",
     "swizzle is {found}, must be 2, 3 or 4 for im2col-wide", wide_page},
    {rule::w04_interleave, "W04", fatal, in_spec, true, "im2col-wide: there is no interleave.",
     "interleave is {found}, must be {allowed} for im2col-wide", "PTX ISA, Tensors, im2col::w mode"},
    {rule::w05_mode, "W05", fatal, in_spec, true, "im2col-wide: `mode` is 0 (W) or 1 (W128).",
     "mode is {found}, must be at most {allowed}", wide_page},
    {rule::u01_shared_alignment, "U01", fatal, in_use, false,
     "The tile's shared address is a multiple of 128 (a misaligned address otherwise), and with a swizzle of one "
     "repeat of it: 256, 512 or 1024 (the pattern begins in its middle otherwise).",
     "the shared address is {found:#x}, must be a multiple of {allowed}", measured},
    {rule::u03_store_corner, "U03", fatal, in_use, false,
     "No coordinate of a store or reduction is negative (an illegal instruction otherwise).",
     "coordinate {axis} is {signed_found}, must not be negative in a store", measured},
    {rule::u06_reduction_type, "U06", fatal, in_use, false,
     "The copy engine has the reduction for the map's element type (an illegal instruction otherwise).",
     "the copy engine has no such reduction for element type {found}", measured},
    {rule::u07_instruction_rank, "U07", fatal, in_use, false,
     "The instruction's dimension is the map's rank (an illegal instruction otherwise).",
     "the instruction has {found} dimensions, the map {allowed}", ptx_copy},
    {rule::u09_innermost_coordinate, "U09", fatal, in_use, false,
     "Without interleave the innermost coordinate is a multiple of 16 bytes (an illegal instruction otherwise).",
     "coordinate {axis} is {signed_found}, must be a multiple of {allowed} elements (16 bytes)", measured},
    // clang-format on
};

}  // namespace tmap::detail
