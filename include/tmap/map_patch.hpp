// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device_address.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap {

/// The values of one map of a batch that differ from its template. Only the fields in the
/// template's `patch_fields` are read. Names and units are those of `tensor_spec`. 112 bytes: seven
/// loads of 16 bytes.
struct alignas(16) map_patch {
  device_address global_address{};
  std::uint64_t global_stride_bytes[max_rank - 1];
  std::uint64_t global_dim[max_rank];
  std::uint32_t box_dim[max_rank];
  std::uint16_t element_stride[max_rank];
};
static_assert(sizeof(map_patch) == 112 && std::is_trivially_copyable_v<map_patch>);

/// A patch source of one `map_patch` for each map, in device memory.
struct patch_array {
  const map_patch* patches{};
};

/// A patch source of separate arrays in device memory with one element for each map. An array whose
/// field the template does not change may be null.
struct patch_columns {
  const std::uint64_t* global_address{};
  const std::uint64_t* global_dim[max_rank]{};
  const std::uint64_t* global_stride_bytes[max_rank - 1]{};
};

/// A patch source of separate arrays of 32-bit values, half the bytes of `patch_columns`. Arrays
/// may be null as there. Addresses are offsets. Offsets and strides count units of 16 bytes, the
/// alignment of both, so each reaches 64 GiB.
struct compact_columns {
  device_address base_address{};  ///< map i begins at base_address + 16 * address_units[i]
  const std::uint32_t* address_units{};
  const std::uint32_t* global_dim[max_rank]{};
  const std::uint32_t* global_stride_units[max_rank - 1]{};
};

/// The format of the row offsets of a ragged batch.
enum class offset_format : std::uint32_t {
  ends,               ///< n values: tensor i ends before ends[i] and begins at ends[i - 1] (0 for the first)
  prefix,             ///< n + 1 values: tensor i is [prefix[i], prefix[i + 1]); prefix[0] is 0
  sizes,              ///< n values: tensor i has sizes[i] rows, after those of all before it
  begins_and_counts,  ///< n values and n counts: tensor i has counts[i] rows from begins[i] on; any order, any gaps
  slots,              ///< n counts: tensor i has counts[i] rows, at most `slot_rows`, from row i * `slot_rows` on
  labels,             ///< a value for each row: its tensor, or -1 for a row of none; grouped products alone take it
};

/// The first and last row of each tensor of a ragged batch, or of each group of a product. Device
/// memory.
struct row_offsets {
  const void* values{};
  offset_format format{};
  std::uint32_t bytes{4};     ///< of each value: 4 or 8, signed
  const void* counts{};       ///< `begins_and_counts`: the counts, of as many bytes
  std::uint64_t slot_rows{};  ///< `slots`: the rows from one tensor's first row to the next one's
};

/// The value of `ragged_rows::rows` if the number is not known. Offsets are then not compared with
/// it.
inline constexpr std::uint64_t any_rows = ~std::uint64_t{0};

/// A patch source of tensors packed one after another along their outermost dimension in one
/// buffer. The template has the inner dims and all strides. Map i gets the address of its first
/// row, and its number of rows as outermost dim. A tensor without rows gets the safe empty map and
/// the status `empty`.
struct ragged_rows {
  device_address base_address{};    ///< address of row 0
  std::uint64_t row_pitch_bytes{};  ///< from one row (a slice of the outermost dimension) to the next
  row_offsets offsets{};            ///< a call that reads `offset_format::sizes` needs a workspace for their sums
  /// The rows that exist. A tensor that leaves them is judged as one at address 0, which is
  /// refused.
  std::uint64_t rows{any_rows};
};

/// Returns the address of `count` rows from row `begin` on, or 0 if not all of them exist. Any bits
/// are legal input. `Rows` is `ragged_rows`, or a kernel's view of it.
template <class Rows>
TMAP_HOST_DEVICE constexpr std::uint64_t address_of_rows(const Rows& source, std::uint64_t begin, std::uint64_t count) {
  const bool exist = source.rows == any_rows || count == 0 || (begin <= source.rows && count <= source.rows - begin);
  return exist ? source.base_address + begin * source.row_pitch_bytes : 0;
}

}  // namespace tmap
