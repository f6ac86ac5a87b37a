// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Readers of patch sources: device callables `i -> map_patch` that load the template's fields of
/// map i and leave the others undefined. The encoder takes any callable of this shape. `read` does
/// the same for fields that its caller knows at compile time.

#include <tmap/detail/row_offsets.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/item_status.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>
#include <tmap/peer_memory_ref.hpp>

namespace tmap::device {

/// Reads a `patch_array`, sixteen bytes at a time, and only those that hold a field of the
/// template.
class patch_array_reader {
 public:
  __host__ __device__ patch_array_reader(const patch_array& source, patch_fields fields)
      : patches_(source.patches), fields_(fields) {}

  __device__ map_patch operator()(std::uint64_t i) const { return read(i, fields_); }

  __device__ map_patch read(std::uint64_t i, patch_fields fields) const {
    const std::uint32_t chunks = chunks_of(fields);
    constexpr std::uint32_t chunk_count = sizeof(map_patch) / sizeof(uint4);
    map_patch patch;
    const uint4* const from = reinterpret_cast<const uint4*>(patches_ + i);
    uint4* const to = reinterpret_cast<uint4*>(&patch);
#pragma unroll
    for (std::uint32_t chunk = 0; chunk < chunk_count; ++chunk) {
      if (chunks >> chunk & 1) to[chunk] = from[chunk];
    }
    return patch;
  }

 private:
  static __host__ __device__ constexpr std::uint32_t chunk_bit(std::size_t offset) {
    return 1u << (offset / sizeof(uint4));
  }

  static __host__ __device__ constexpr std::uint32_t chunks_of(patch_fields fields) {
    std::uint32_t chunks = has_any(fields, patch_address) ? chunk_bit(offsetof(map_patch, global_address)) : 0;
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      if (has_any(fields, patch_dim(axis))) chunks |= chunk_bit(offsetof(map_patch, global_dim) + 8 * axis);
      if (axis + 1 < max_rank && has_any(fields, patch_stride(axis))) {
        chunks |= chunk_bit(offsetof(map_patch, global_stride_bytes) + 8 * axis);
      }
      if (has_any(fields, patch_box(axis))) chunks |= chunk_bit(offsetof(map_patch, box_dim) + 4 * axis);
      if (has_any(fields, patch_element_stride(axis)))
        chunks |= chunk_bit(offsetof(map_patch, element_stride) + 2 * axis);
    }
    return chunks;
  }

  const map_patch* patches_;
  patch_fields fields_;
};

/// Reads `patch_columns`.
class patch_columns_reader {
 public:
  __host__ __device__ patch_columns_reader(const patch_columns& source, patch_fields fields)
      : columns_(source), fields_(fields) {}

  __device__ map_patch operator()(std::uint64_t i) const { return read(i, fields_); }

  __device__ map_patch read(std::uint64_t i, patch_fields fields) const {
    map_patch patch;
    if (has_any(fields, patch_address)) patch.global_address = columns_.global_address[i];
#pragma unroll
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      if (has_any(fields, patch_dim(axis))) patch.global_dim[axis] = columns_.global_dim[axis][i];
      if (axis + 1 < max_rank && has_any(fields, patch_stride(axis))) {
        patch.global_stride_bytes[axis] = columns_.global_stride_bytes[axis][i];
      }
    }
    return patch;
  }

 private:
  patch_columns columns_;
  patch_fields fields_;
};

/// Reads `compact_columns`.
class compact_columns_reader {
 public:
  __host__ __device__ compact_columns_reader(const compact_columns& source, patch_fields fields)
      : columns_(source), fields_(fields) {}

  __device__ map_patch operator()(std::uint64_t i) const { return read(i, fields_); }

  __device__ map_patch read(std::uint64_t i, patch_fields fields) const {
    map_patch patch;
    if (has_any(fields, patch_address))
      patch.global_address = columns_.base_address + bytes_at(columns_.address_units, i);
#pragma unroll
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      if (has_any(fields, patch_dim(axis))) patch.global_dim[axis] = columns_.global_dim[axis][i];
      if (axis + 1 < max_rank && has_any(fields, patch_stride(axis))) {
        patch.global_stride_bytes[axis] = bytes_at(columns_.global_stride_units[axis], i);
      }
    }
    return patch;
  }

 private:
  static __device__ std::uint64_t bytes_at(const std::uint32_t* units, std::uint64_t i) {
    return std::uint64_t{units[i]} * 16;
  }

  compact_columns columns_;
  patch_fields fields_;
};

/// `ragged_rows` for kernels: the offsets have one type, `std::int32_t` or `std::int64_t`, of
/// `row_offsets::bytes` bytes.
template <class Offset>
struct typed_rows {
  std::uint64_t base_address;
  std::uint64_t row_pitch_bytes;
  tmap::detail::offset_reader<Offset> offsets;
  std::uint64_t rows;
};

template <class Offset>
__host__ __device__ constexpr typed_rows<Offset> typed_rows_of(const ragged_rows& source) {
  const row_offsets& offsets = source.offsets;
  return {source.base_address,
          source.row_pitch_bytes,
          {{static_cast<const Offset*>(offsets.values)},
           offsets.format,
           {static_cast<const Offset*>(offsets.counts)},
           offsets.slot_rows},
          source.rows};
}

/// Reads `typed_rows`. With `offset_format::sizes`, `begins[i]` is the number of rows before tensor
/// i, a running sum.
template <class Offset>
class ragged_rows_reader {
 public:
  __host__ __device__ explicit ragged_rows_reader(const typed_rows<Offset>& source,
                                                  const std::int64_t* begins = nullptr)
      : source_(source), begins_(begins) {}

  __device__ map_patch operator()(std::uint64_t i) const { return read(i, {}); }

  __device__ map_patch read(std::uint64_t i, patch_fields) const {
    const auto begin = static_cast<std::uint64_t>(source_.offsets.begin(i, begins_));
    const std::uint64_t rows = source_.offsets.count(i, begin);
    map_patch patch;
    patch.global_address = address_of_rows(source_, begin, rows);
    // Only the outermost dim is a field of the template; writing all of them keeps the index a
    // constant.
#pragma unroll
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) patch.global_dim[axis] = rows;
    return patch;
  }

 private:
  typed_rows<Offset> source_;
  const std::int64_t* begins_;
};

/// Reads patches of any reader, and moves each address from this rank's window to that of the map's
/// owner (`map_owners`). Has the windows that the maps must not leave.
template <class Reader>
class peer_reader {
 public:
  __host__ __device__ peer_reader(const Reader& reader, const map_owners& owners) : reader_(reader), owners_(owners) {
    for (std::uint32_t i = 0; i < owners.memory.ranks; ++i) {
      windows_[i] = {owners.memory.address(i), owners.memory.address(i, owners.memory.bytes)};
    }
  }

  __device__ map_patch operator()(std::uint64_t i) const { return moved(i, reader_(i)); }

  __device__ map_patch read(std::uint64_t i, patch_fields fields) const { return moved(i, reader_.read(i, fields)); }

  __device__ const address_window* windows() const { return windows_; }
  __device__ std::uint32_t window_count() const { return owners_.memory.ranks; }

 private:
  __device__ map_patch moved(std::uint64_t i, map_patch patch) const {
    patch.global_address = owners_.memory.at_owner(owners_.ranks[i], patch.global_address);
    return patch;
  }

  Reader reader_;
  map_owners owners_;
  address_window windows_[max_group_ranks]{};
};

}  // namespace tmap::device
