// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device_address.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap {

/// What one map of a batch changes in its template. Only the fields named by the template's
/// `patch_fields` are read. Same words and units as in `tensor_spec`. 112 bytes: seven 16-byte
/// loads. Not initialised, so that kernels read and write no field of it in vain: `map_patch
/// patch{}` is.
struct alignas(16) map_patch {
  device_address global_address{};
  std::uint64_t global_stride_bytes[max_rank - 1];
  std::uint64_t global_dim[max_rank];
  std::uint32_t box_dim[max_rank];
  std::uint16_t element_stride[max_rank];
};
static_assert(sizeof(map_patch) == 112 && std::is_trivially_copyable_v<map_patch>);

/// A patch source: one `map_patch` for each map, in device memory.
struct patch_array {
  const map_patch* patches{};
};

/// A patch source: separate arrays in device memory, one element for each map; an array whose field
/// the template does not change may be null.
struct patch_columns {
  const std::uint64_t* global_address{};
  const std::uint64_t* global_dim[max_rank]{};
  const std::uint64_t* global_stride_bytes[max_rank - 1]{};
};

/// A patch source: separate arrays of 32-bit values, half the bytes of `patch_columns`; null as
/// there. Addresses are offsets, and offsets and strides count units of 16 bytes, below which
/// neither may be legal: 64 GiB reach of each.
struct compact_columns {
  device_address base_address{};  ///< map i begins at base_address + 16 * address_units[i]
  const std::uint32_t* address_units{};
  const std::uint32_t* global_dim[max_rank]{};
  const std::uint32_t* global_stride_units[max_rank - 1]{};
};

/// How a ragged batch says where each tensor begins, in rows.
enum class offset_format : std::uint32_t {
  ends,    ///< n values: tensor i ends before ends[i] and begins at ends[i - 1] (0 for the first)
  prefix,  ///< n + 1 values: tensor i is [prefix[i], prefix[i + 1]); prefix[0] is 0
  sizes,   ///< n values: tensor i has sizes[i] rows, after those of all before it
};

/// Where each tensor of a ragged batch, or each group of a product, begins and ends, in rows:
/// device memory.
struct row_offsets {
  const void* values{};
  offset_format format{};
  std::uint32_t bytes{4};  ///< of each value: 4 or 8, signed
};

/// Of `ragged_rows::rows`: nobody knows, and offsets are taken at their word.
inline constexpr std::uint64_t any_rows = ~std::uint64_t{0};

/// A patch source: tensors packed one after another along their outermost dimension in one buffer.
/// The template brings the inner dims and all strides; map i gets the address of its first row and
/// its number of rows as outermost dim. A tensor of no rows gets the safe empty map and the status
/// `empty`.
struct ragged_rows {
  device_address base_address{};    ///< address of row 0
  std::uint64_t row_pitch_bytes{};  ///< from one row (a slice of the outermost dimension) to the next
  row_offsets offsets{};            ///< a call that reads `offset_format::sizes` needs a workspace for their sums
  /// Rows that exist. A tensor that leaves them has no address: it is judged as one at address 0,
  /// which is refused.
  std::uint64_t rows{any_rows};
};

/// Where `count` rows from row `begin` on lie; 0 when not all of them exist. Any bits are legal
/// input. `Rows` is `ragged_rows`, or a kernel's view of it.
template <class Rows>
TMAP_HOST_DEVICE constexpr std::uint64_t address_of_rows(const Rows& source, std::uint64_t begin, std::uint64_t count) {
  const bool exist = source.rows == any_rows || count == 0 || (begin <= source.rows && count <= source.rows - begin);
  return exist ? source.base_address + begin * source.row_pitch_bytes : 0;
}

}  // namespace tmap
