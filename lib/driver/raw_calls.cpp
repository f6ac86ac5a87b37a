// SPDX-License-Identifier: Apache-2.0
#include "lib/driver/raw_calls.hpp"

#include <cstring>

#include "lib/driver/enum_checks.hpp"

namespace tmap::driver {
namespace {

void* as_pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

/// Copies `map` to a map of CUDA's type, on which it makes `call`, and copies it back.
template <class Call>
CUresult through_vendor_map(tensor_map& map, const Call& call) {
  CUtensorMap vendor;
  std::memcpy(&vendor, &map, sizeof vendor);
  const CUresult code = call(&vendor);
  std::memcpy(&map, &vendor, sizeof vendor);
  return code;
}

struct vendor_modes {
  CUtensorMapDataType type;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion;
  CUtensorMapFloatOOBfill oob_fill;
};

vendor_modes modes_of(const tensor_spec& spec) {
  return {static_cast<CUtensorMapDataType>(spec.type), static_cast<CUtensorMapInterleave>(spec.interleave),
          static_cast<CUtensorMapSwizzle>(spec.swizzle), static_cast<CUtensorMapL2promotion>(spec.l2_promotion),
          static_cast<CUtensorMapFloatOOBfill>(spec.oob_fill)};
}

/// The driver's 64-bit type is `unsigned long`'s sibling: same size, another name.
struct vendor_extents {
  explicit vendor_extents(const tensor_spec& spec) {
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) dims[axis] = spec.global_dim[axis];
    for (std::uint32_t index = 0; index + 1 < max_rank; ++index) strides[index] = spec.global_stride_bytes[index];
  }

  cuuint64_t dims[max_rank]{};
  cuuint64_t strides[max_rank - 1]{};
};

}  // namespace

CUresult raw_encode(encode_tiled_function function, const tensor_spec& spec, tensor_map& map) {
  map = {};
  const vendor_modes modes = modes_of(spec);
  const vendor_extents extents{spec};
  return through_vendor_map(map, [&](CUtensorMap* vendor) {
    return function(vendor, modes.type, spec.rank, as_pointer(spec.global_address), extents.dims, extents.strides,
                    spec.box_dim, spec.element_stride, modes.interleave, modes.swizzle, modes.l2_promotion,
                    modes.oob_fill);
  });
}

CUresult raw_encode(encode_im2col_function function, const im2col_spec& spec, tensor_map& map) {
  map = {};
  const tensor_spec& tensor = spec.tensor;
  const vendor_modes modes = modes_of(tensor);
  const vendor_extents extents{tensor};
  return through_vendor_map(map, [&](CUtensorMap* vendor) {
    return function(vendor, modes.type, tensor.rank, as_pointer(tensor.global_address), extents.dims, extents.strides,
                    spec.lower_corner, spec.upper_corner, spec.channels_per_pixel, spec.pixels_per_column,
                    tensor.element_stride, modes.interleave, modes.swizzle, modes.l2_promotion, modes.oob_fill);
  });
}

CUresult raw_encode(encode_im2col_wide_function function, const im2col_wide_spec& spec, tensor_map& map) {
  map = {};
  const tensor_spec& tensor = spec.tensor;
  const vendor_modes modes = modes_of(tensor);
  const vendor_extents extents{tensor};
  return through_vendor_map(map, [&](CUtensorMap* vendor) {
    return function(vendor, modes.type, tensor.rank, as_pointer(tensor.global_address), extents.dims, extents.strides,
                    spec.lower_corner_w, spec.upper_corner_w, spec.channels_per_pixel, spec.pixels_per_column,
                    tensor.element_stride, modes.interleave, static_cast<CUtensorMapIm2ColWideMode>(spec.mode),
                    modes.swizzle, modes.l2_promotion, modes.oob_fill);
  });
}

CUresult raw_replace_address(replace_address_function function, tensor_map& map, std::uint64_t global_address) {
  return through_vendor_map(map, [&](CUtensorMap* vendor) { return function(vendor, as_pointer(global_address)); });
}

}  // namespace tmap::driver
