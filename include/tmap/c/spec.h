// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/status.h>

/// @file
/// Specs of tensor maps, their rules and their bits. Nothing here needs a GPU except `tmap_encode`,
/// `tmap_encode_im2col`, `tmap_replace_address` and `tmap_query_device_limits`.

#ifdef __cplusplus
extern "C" {
#endif

#define TMAP_MAX_RANK 5

/// Values of `tmap_tensor_spec::element_type`.
enum {
  TMAP_U8 = 0,
  TMAP_U16 = 1,
  TMAP_U32 = 2,
  TMAP_I32 = 3,
  TMAP_U64 = 4,
  TMAP_I64 = 5,
  TMAP_F16 = 6,
  TMAP_F32 = 7,
  TMAP_F64 = 8,
  TMAP_BF16 = 9,
  TMAP_F32_FTZ = 10,
  TMAP_TF32 = 11,
  TMAP_TF32_FTZ = 12,
  TMAP_U4_ALIGN8 = 13,
  TMAP_U4_ALIGN16 = 14,
  TMAP_U6_ALIGN16 = 15
};

/// Values of the modes of a `tmap_tensor_spec`.
enum { TMAP_INTERLEAVE_NONE = 0, TMAP_INTERLEAVE_16B = 1, TMAP_INTERLEAVE_32B = 2 };
enum {
  TMAP_SWIZZLE_NONE = 0,
  TMAP_SWIZZLE_32B = 1,
  TMAP_SWIZZLE_64B = 2,
  TMAP_SWIZZLE_128B = 3,
  TMAP_SWIZZLE_128B_ATOM_32B = 4,
  TMAP_SWIZZLE_128B_ATOM_32B_FLIP_8B = 5,
  TMAP_SWIZZLE_128B_ATOM_64B = 6
};
enum { TMAP_L2_PROMOTION_NONE = 0, TMAP_L2_PROMOTION_64B = 1, TMAP_L2_PROMOTION_128B = 2, TMAP_L2_PROMOTION_256B = 3 };
enum { TMAP_OOB_FILL_ZERO = 0, TMAP_OOB_FILL_NAN = 1 };

/// `tmap::tensor_spec`, which describes each member: dims innermost first, strides in bytes. Any
/// values are legal input of `tmap_validate`; an unknown type or mode breaks a rule.
typedef struct tmap_tensor_spec {
  uint32_t struct_size;
  uint32_t rank;
  uint64_t global_address;
  uint64_t global_dim[TMAP_MAX_RANK];
  uint64_t global_stride_bytes[TMAP_MAX_RANK - 1];
  uint32_t box_dim[TMAP_MAX_RANK];
  uint32_t element_stride[TMAP_MAX_RANK];
  uint32_t element_type;
  uint32_t interleave;
  uint32_t swizzle;
  uint32_t l2_promotion;
  uint32_t oob_fill;
  uint32_t reserved;
} tmap_tensor_spec;

/// `tmap::im2col_spec`.
typedef struct tmap_im2col_spec {
  uint32_t struct_size;
  uint32_t reserved;
  tmap_tensor_spec tensor;  ///< with a size of its own
  int32_t lower_corner[3];
  int32_t upper_corner[3];
  uint32_t channels_per_pixel;
  uint32_t pixels_per_column;
} tmap_im2col_spec;

/// The limits of a GPU. A function that takes limits takes null for a Hopper GPU.
typedef struct tmap_device_limits {
  uint32_t struct_size;
  uint32_t compute_capability;   ///< 10 * major + minor
  uint32_t shared_memory_bytes;  ///< most shared memory one block can opt in to
  uint32_t reserved;
} tmap_device_limits;

/// One broken rule. Its layout never changes.
typedef struct tmap_violation {
  uint32_t rule;
  int32_t axis;  ///< -1: none
  uint64_t found;
  uint64_t allowed;
} tmap_violation;

/// The 128 bytes of a tensor map, at any alignment of 8. (Kernel parameters and slots are aligned
/// to 128 bytes.)
typedef struct tmap_tensor_map {
  uint64_t words[16];
} tmap_tensor_map;

enum { TMAP_MAP_TILED = 0, TMAP_MAP_IM2COL = 1 };

/// `tmap::decoded_map`.
typedef struct tmap_decoded_map {
  uint32_t struct_size;
  uint32_t kind;            ///< TMAP_MAP_*
  tmap_tensor_spec tensor;  ///< its `struct_size` is set
  int32_t lower_corner[3];
  int32_t upper_corner[3];
  uint32_t channels_per_pixel;
  uint32_t pixels_per_column;
  uint64_t noted_box_bytes;
  uint64_t noted_shared_alignment;
  uint32_t large_tensor;  ///< 0 or 1
  uint32_t reserved;
} tmap_decoded_map;

/// Fills `spec` for a tensor whose rows follow each other without gaps; `dims` and `box` have
/// `rank` values, innermost first. Every other member, its size included, gets the usual value.
/// @fails `TMAP_INVALID_ARGUMENT`.
TMAP_API tmap_status tmap_packed_spec(uint32_t element_type, uint64_t global_address, uint32_t rank,
                                      const uint64_t* dims, const uint32_t* box, tmap_tensor_spec* spec);

/// Lists the rules that `spec` breaks, warnings too. `count` gets their number, `violations` the
/// first `capacity` of them; it may be null when `capacity` is 0. Pure.
/// @fails `TMAP_RULE_BROKEN`, after listing them, if one of them is an error; with
/// `TMAP_INVALID_ARGUMENT`.
TMAP_API tmap_status tmap_validate(const tmap_tensor_spec* spec, const tmap_device_limits* limits,
                                   tmap_violation* violations, uint32_t capacity, uint32_t* count);
TMAP_API tmap_status tmap_validate_im2col(const tmap_im2col_spec* spec, const tmap_device_limits* limits,
                                          tmap_violation* violations, uint32_t capacity, uint32_t* count);

/// Returns the same as text, or "no rule broken". Each rule has a line, and the line after it
/// begins with two spaces and states what to do.
/// @fails `TMAP_INVALID_ARGUMENT`, `TMAP_BUFFER_TOO_SMALL`, `TMAP_OUT_OF_MEMORY`.
TMAP_API tmap_status tmap_explain(const tmap_tensor_spec* spec, const tmap_device_limits* limits, char* text,
                                  size_t capacity, size_t* length);
TMAP_API tmap_status tmap_explain_im2col(const tmap_im2col_spec* spec, const tmap_device_limits* limits, char* text,
                                         size_t capacity, size_t* length);

/// Encode with the driver, as the functions of encode.hpp. They fail with the same statuses and
/// `TMAP_INVALID_ARGUMENT`.
TMAP_API tmap_status tmap_encode(const tmap_tensor_spec* spec, tmap_tensor_map* map);
TMAP_API tmap_status tmap_encode_im2col(const tmap_im2col_spec* spec, tmap_tensor_map* map);
/// `moved` may be `map`.
TMAP_API tmap_status tmap_replace_address(const tmap_tensor_map* map, uint64_t global_address, tmap_tensor_map* moved);
/// `limits->struct_size` and `reserved` are read, the rest is written.
TMAP_API tmap_status tmap_query_device_limits(tmap_device_limits* limits);

/// Write and read the bits, as in decode.hpp. `tmap_encode_bits` needs no driver; maps that a GPU
/// uses come from the driver. `decoded->struct_size` and `reserved` are read, the rest is written.
/// Fail with `TMAP_RULE_BROKEN`, `TMAP_NOT_A_TENSOR_MAP`, `TMAP_INVALID_ARGUMENT`.
TMAP_API tmap_status tmap_encode_bits(const tmap_tensor_spec* spec, tmap_tensor_map* map);
TMAP_API tmap_status tmap_decode(const tmap_tensor_map* map, tmap_decoded_map* decoded);

/// List every field, for a person or as one JSON object, also of bytes that are no map. Fail with
/// `TMAP_INVALID_ARGUMENT`, `TMAP_BUFFER_TOO_SMALL`, `TMAP_OUT_OF_MEMORY`.
TMAP_API tmap_status tmap_describe(const tmap_tensor_map* map, char* text, size_t capacity, size_t* length);
TMAP_API tmap_status tmap_describe_json(const tmap_tensor_map* map, char* text, size_t capacity, size_t* length);

#ifdef __cplusplus
}
#endif
