// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device_address.hpp>
#include <tmap/element_type.hpp>

#include <cuda/std/span>

namespace tmap {

inline constexpr std::uint32_t max_rank = 5;

/// Channel-interleaved layouts (NC/8HWC8 and NC/16HWC16). Values equal `CUtensorMapInterleave`.
enum class interleave : std::uint32_t { none = 0, bytes_16 = 1, bytes_32 = 2 };

/// How the bytes of a tile are permuted in shared memory. Values equal `CUtensorMapSwizzle`; those
/// from `bytes_128_atom_32` on need compute capability 10.
enum class swizzle : std::uint32_t {
  none = 0,
  bytes_32 = 1,
  bytes_64 = 2,
  bytes_128 = 3,
  bytes_128_atom_32 = 4,
  bytes_128_atom_32_flip_8 = 5,
  bytes_128_atom_64 = 6,
};

/// The number of bytes that L2 fetches around a miss. Values equal `CUtensorMapL2promotion`.
enum class l2_promotion : std::uint32_t { none = 0, bytes_64 = 1, bytes_128 = 2, bytes_256 = 3 };

/// The value that an element outside the tensor reads as. Values equal `CUtensorMapFloatOOBfill`.
enum class oob_fill : std::uint32_t { zero = 0, nan = 1 };

/// Returns the name of a mode in messages, files and command lines; "invalid" for a value that is
/// no enumerator.
TMAP_HOST_DEVICE constexpr const char* name(interleave mode) {
  switch (mode) {
    case interleave::none: return "none";
    case interleave::bytes_16: return "16B";
    case interleave::bytes_32: return "32B";
  }
  return "invalid";
}

TMAP_HOST_DEVICE constexpr const char* name(swizzle mode) {
  switch (mode) {
    case swizzle::none: return "none";
    case swizzle::bytes_32: return "32B";
    case swizzle::bytes_64: return "64B";
    case swizzle::bytes_128: return "128B";
    case swizzle::bytes_128_atom_32: return "128B_atom_32B";
    case swizzle::bytes_128_atom_32_flip_8: return "128B_atom_32B_flip_8B";
    case swizzle::bytes_128_atom_64: return "128B_atom_64B";
  }
  return "invalid";
}

TMAP_HOST_DEVICE constexpr const char* name(l2_promotion mode) {
  switch (mode) {
    case l2_promotion::none: return "none";
    case l2_promotion::bytes_64: return "64B";
    case l2_promotion::bytes_128: return "128B";
    case l2_promotion::bytes_256: return "256B";
  }
  return "invalid";
}

TMAP_HOST_DEVICE constexpr const char* name(oob_fill mode) {
  switch (mode) {
    case oob_fill::zero: return "zero";
    case oob_fill::nan: return "nan";
  }
  return "invalid";
}

/// The content of a tiled tensor map: the place of a tensor in global memory, its layout, and the
/// box that one copy moves. A plain value with no invariant: `validate` checks whether it is legal.
///
/// Dimensions are innermost first: `global_dim[0]` is the contiguous one. Only the first `rank`
/// dimensions (`rank - 1` strides) count; the rest are ignored. See the CUDA driver API,
/// cuTensorMapEncodeTiled, and PTX ISA 5.5 "Tensors".
struct tensor_spec {
  device_address global_address{};                        ///< device address of element 0, in bytes
  element_type type{};                                    ///< type of one element
  std::uint32_t rank{};                                   ///< 1 to 5
  std::uint64_t global_dim[max_rank]{};                   ///< tensor extent, 1 to 2^31 (T09, T36)
  std::uint64_t global_stride_bytes[max_rank - 1]{};      ///< [i] is the step of dimension i + 1
  std::uint32_t box_dim[max_rank]{};                      ///< box extent, in elements, 1 to 256
  std::uint32_t element_stride[max_rank]{1, 1, 1, 1, 1};  ///< step inside the box, 1 to 8
  tmap::interleave interleave{};
  tmap::swizzle swizzle{};
  tmap::l2_promotion l2_promotion{};
  tmap::oob_fill oob_fill{};
};

/// The content of an im2col tensor map. `tensor.box_dim` is ignored: the bounding box is
/// [lower_corner, dim + upper_corner) over the rank - 2 spatial dimensions, innermost (W) first.
/// See cuTensorMapEncodeIm2col and PTX ISA 5.5.4.
struct im2col_spec {
  tensor_spec tensor;
  std::int32_t lower_corner[3]{};
  std::int32_t upper_corner[3]{};
  std::uint32_t channels_per_pixel{};
  std::uint32_t pixels_per_column{};
};

/// `CUtensorMapIm2ColWideMode`.
enum class im2col_wide_mode : std::uint32_t { w = 0, w128 = 1 };

/// The content of an im2col-wide tensor map (compute capability 10): corners along W only. See
/// cuTensorMapEncodeIm2colWide.
struct im2col_wide_spec {
  tensor_spec tensor;
  std::int32_t lower_corner_w{};
  std::int32_t upper_corner_w{};
  std::uint32_t channels_per_pixel{};
  std::uint32_t pixels_per_column{};
  im2col_wide_mode mode{};
};

/// Returns the spec of a tensor without gaps between its rows. `dims` and `box` are innermost first
/// and have the same length, 1 to 5. Of longer spans only the first five values are read. Strides
/// are the products of the dims, so `validate` refuses rows that are no multiple of 16 bytes.
TMAP_HOST_DEVICE constexpr tensor_spec packed_spec(element_type type, std::uint64_t global_address,
                                                   cuda::std::span<const std::uint64_t> dims,
                                                   cuda::std::span<const std::uint32_t> box) {
  tensor_spec spec;
  spec.global_address = global_address;
  spec.type = type;
  spec.rank = static_cast<std::uint32_t>(dims.size());
  std::uint64_t stride = element_bytes(type);
  for (std::uint32_t axis = 0; axis < max_rank && axis < dims.size(); ++axis) {
    spec.global_dim[axis] = dims[axis];
    if (axis < box.size()) spec.box_dim[axis] = box[axis];
    stride *= dims[axis];
    if (axis + 1 < max_rank && axis + 1 < dims.size()) spec.global_stride_bytes[axis] = stride;
  }
  return spec;
}

/// Returns the elements of one tile along `axis`: ceil(box / element stride). Without an interleave
/// the element stride of dimension 0 is ignored. An interleaved tile counts whole units of 16 or 32
/// bytes along dimension 0 and holds one channel slice (dimension rank - 2) for any box
/// (docs/measurements/copy_engine_semantics.md, section 5).
TMAP_HOST_DEVICE constexpr std::uint32_t tile_dim(const tensor_spec& spec, std::uint32_t axis) {
  const bool interleaved = spec.interleave != interleave::none;
  if (interleaved && axis + 2 == spec.rank) return 1;
  const std::uint32_t step = axis == 0 && !interleaved ? 1 : spec.element_stride[axis];
  return step == 0 ? 0 : (spec.box_dim[axis] + step - 1) / step;
}

/// Returns the bytes of one row of a tile: its elements along dimension 0, or its 16- or 32-byte
/// units with an interleave.
TMAP_HOST_DEVICE constexpr std::uint64_t tile_row_bytes(const tensor_spec& spec) {
  const std::uint32_t count = tile_dim(spec, 0);
  if (spec.interleave == interleave::none) return element_bytes(spec.type, count);
  return std::uint64_t{count} * (spec.interleave == interleave::bytes_16 ? 16 : 32);
}

/// Returns the bytes of one load, which a barrier must expect. At most 256^5 * 32 for a spec in
/// range, so the product cannot wrap. A tile may take more shared memory: `tile_footprint_bytes`.
TMAP_HOST_DEVICE constexpr std::uint64_t tile_bytes(const tensor_spec& spec) {
  std::uint64_t bytes = tile_row_bytes(spec);
  for (std::uint32_t axis = 1; axis < spec.rank && axis < max_rank; ++axis) {
    bytes *= tile_dim(spec, axis);
  }
  return bytes;
}

/// Returns the bytes of one swizzle row; 0 without swizzle.
TMAP_HOST_DEVICE constexpr std::uint32_t swizzle_span_bytes(swizzle mode) {
  switch (mode) {
    case swizzle::none: return 0;
    case swizzle::bytes_32: return 32;
    case swizzle::bytes_64: return 64;
    default: return 128;
  }
}

/// Returns the bytes from one row of a tile to the next in shared memory. With a swizzle a row
/// takes a whole span, even if the box is narrower. Interleaved rows have no gaps.
TMAP_HOST_DEVICE constexpr std::uint64_t tile_row_pitch_bytes(const tensor_spec& spec) {
  const bool spans = spec.swizzle != swizzle::none && spec.interleave == interleave::none;
  return spans ? swizzle_span_bytes(spec.swizzle) : tile_row_bytes(spec);
}

/// Returns the shared memory of one tile: rows times their pitch, rounded up to whole swizzle
/// spans.
TMAP_HOST_DEVICE constexpr std::uint64_t tile_footprint_bytes(const tensor_spec& spec) {
  std::uint64_t bytes = tile_row_pitch_bytes(spec);
  for (std::uint32_t axis = 1; axis < spec.rank && axis < max_rank; ++axis) {
    bytes *= tile_dim(spec, axis);
  }
  const std::uint64_t span = swizzle_span_bytes(spec.swizzle);
  return span == 0 ? bytes : (bytes + span - 1) / span * span;
}

/// Returns the alignment that a tile needs in shared memory: 128 without swizzle, else one repeat
/// of the pattern, which is 256, 512 or 1024. The pattern then begins at the tile's first byte.
TMAP_HOST_DEVICE constexpr std::uint32_t shared_alignment(swizzle mode) {
  return mode == swizzle::none ? 128 : 8 * swizzle_span_bytes(mode);
}

}  // namespace tmap
