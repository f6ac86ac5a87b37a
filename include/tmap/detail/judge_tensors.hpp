// SPDX-License-Identifier: Apache-2.0
#pragma once

// Judges one tensor of a ragged operation (ragged.hpp), for the planning kernel and the engine on
// the host. Any bits are legal input. `Rank` is a constant so that the kernel keeps dims in
// registers. Tensors of a lower rank get the same verdict with max_rank.

#include <tmap/detail/choose_route.hpp>
#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/item_status.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/ragged.hpp>

#include <cuda/std/utility>

#include <cstdint>

namespace tmap::detail {

inline constexpr std::uint64_t max_tensor_dim = std::uint64_t{1} << 40;
inline constexpr std::uint64_t max_tensor_bytes = std::uint64_t{1} << 47;
/// The largest reach of the steps along one dim, and of a matrix, a dense batch or a packed buffer.
/// With it no sum of offsets wraps.
inline constexpr std::uint64_t max_stride_reach = std::uint64_t{1} << 47;
inline constexpr std::uint64_t max_packed_alignment = std::uint64_t{1} << 20;

/// Returns the most bytes of each of `count` tensors. A tensor has at most as many pieces of work
/// as bytes, so sums over a batch, of pieces and of places in a packed buffer, stay below 2^63.
TMAP_HOST_DEVICE constexpr std::uint64_t most_tensor_bytes(std::uint64_t count) {
  constexpr std::uint64_t of_all = ~std::uint64_t{0} / 2;
  const std::uint64_t each = of_all / (count == 0 ? 1 : count) / max_packed_alignment * max_packed_alignment;
  return each < max_tensor_bytes ? each : max_tensor_bytes;
}

/// Returns an index for `batch_header::first_bad`. It saturates, since there may be more rows than
/// 32 bits can count.
TMAP_HOST_DEVICE constexpr std::uint32_t header_index(std::uint64_t index) {
  return index < no_bad_item ? static_cast<std::uint32_t>(index) : no_bad_item - 1;
}

TMAP_HOST_DEVICE constexpr std::uint32_t bit(ragged::fault f) {
  return static_cast<std::uint32_t>(f);
}

/// Returns the largest power of two that divides an element's bytes.
TMAP_HOST_DEVICE constexpr std::uint64_t element_alignment(std::uint32_t element_bytes) {
  return element_bytes & (~element_bytes + 1);
}

/// Uses a mask, because the compiler does not know that the divisor is a power of two, and a
/// division takes a GPU a hundred instructions.
TMAP_HOST_DEVICE constexpr bool is_multiple(std::uint64_t value, std::uint64_t power_of_two) {
  return (value & (power_of_two - 1)) == 0;
}

TMAP_HOST_DEVICE constexpr std::uint64_t round_up_to(std::uint64_t bytes, std::uint64_t power_of_two) {
  return (bytes + power_of_two - 1) & ~(power_of_two - 1);
}

/// The relation of the destination's dims to those of the source.
enum class shape_relation : std::uint32_t {
  equal,
  swapped,  ///< dims 0 and 1 exchanged
  reduced,  ///< dim 0 is 1
  summed,   ///< dim 1 is 1; a source without rows is not empty
  clipped,  ///< `pad`: the smaller of both is moved, the destination's rest filled
  corner,   ///< `unpad`: the destination is no larger than the source
};

/// One side of one tensor. Beyond the rank, dims are 1 and strides 0.
struct side_extents {
  std::uint64_t address;
  std::uint64_t dim[max_rank];
  std::uint64_t stride[max_rank - 1];
};

/// The buffer of a side whose tensors are packed; otherwise all memory.
struct side_room {
  std::uint64_t begin{0};
  std::uint64_t bytes{~std::uint64_t{0}};
};

struct side_terms {
  std::uint32_t element_bytes;
  side_room room;
};

/// The limits of each tensor of a batch, on both sides.
struct tensor_limits {
  const address_window* windows;
  std::uint32_t window_count;
  std::uint64_t most_bytes{max_tensor_bytes};  ///< `most_tensor_bytes`
};

/// The terms by which all tensors of an operation are judged.
struct pair_terms {
  shape_relation relation;
  side_terms source;
  side_terms destination;
  tensor_limits limits;
};

struct pair_verdict {
  std::uint32_t bits;    ///< of the tensor's status
  bool has_destination;  ///< false: nothing may be written, not even fill
};

template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr bool is_empty(const side_extents& tensor) {
  bool has_zero = false;
  for (std::uint32_t axis = 0; axis < Rank; ++axis) has_zero = has_zero || tensor.dim[axis] == 0;
  return has_zero;
}

/// Returns the bytes of the elements alone; saturates.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr std::uint64_t bytes_of(const side_extents& tensor, std::uint32_t element_bytes) {
  std::uint64_t bytes = element_bytes;
  for (std::uint32_t axis = 0; axis < Rank; ++axis) bytes = saturated_product(bytes, tensor.dim[axis]);
  return bytes;
}

/// Computes the strides of axes without gaps; saturates.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr void pack_strides(side_extents& tensor, std::uint32_t element_bytes) {
  std::uint64_t extent = element_bytes;
  for (std::uint32_t axis = 1; axis < Rank; ++axis) {
    extent = saturated_product(extent, tensor.dim[axis - 1]);
    tensor.stride[axis - 1] = extent;
  }
}

TMAP_HOST_DEVICE constexpr std::uint32_t judge_windows(std::uint64_t begin, std::uint64_t end,
                                                       const tensor_limits& limits) {
#if defined(__CUDA_ARCH__)
#pragma unroll 4  // that many windows are on their way at once
#endif
  for (std::uint32_t w = 0; w < limits.window_count; ++w) {
    if (limits.windows[w].begin <= begin && end <= limits.windows[w].end) return 0;
  }
  return limits.window_count == 0 ? 0 : bit(ragged::fault::window);
}

/// Judges dims, strides, address and windows of a side that has elements. The end of the tensor and
/// the windows are judged only if nothing else is wrong.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr std::uint32_t judge_extents(const side_extents& tensor, std::uint32_t element_bytes,
                                                       const tensor_limits& limits) {
  const std::uint64_t alignment = element_alignment(element_bytes);
  std::uint32_t bits = bytes_of<Rank>(tensor, element_bytes) > limits.most_bytes ? bit(ragged::fault::dim) : 0;
  std::uint64_t reach = tensor.dim[0] * element_bytes;
  for (std::uint32_t axis = 0; axis < Rank; ++axis) {
    if (tensor.dim[axis] > max_tensor_dim) bits |= bit(ragged::fault::dim);
    if (axis == 0 || tensor.dim[axis] <= 1) continue;
    const std::uint64_t stride = tensor.stride[axis - 1];
    const bool is_wild = saturated_product(stride, tensor.dim[axis]) > max_stride_reach;
    if (is_wild || !is_multiple(stride, alignment)) bits |= bit(ragged::fault::stride);
    reach += (tensor.dim[axis] - 1) * stride;
  }
  const bool is_aligned = tensor.address != 0 && is_multiple(tensor.address, alignment);
  if (!is_aligned || tensor.address >= address_limit) bits |= bit(ragged::fault::address);
  if (bits != 0) return bits;
  if (reach > address_limit - tensor.address) return bit(ragged::fault::address);
  return judge_windows(tensor.address, tensor.address + reach, limits);
}

/// Whether elements share bytes, for strides in any order. Out of line, because permuted dims are
/// rare.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE __attribute__((noinline)) constexpr bool overlaps_in_any_order(side_extents tensor,
                                                                                std::uint64_t extent) {
  for (std::uint32_t pass = 1; pass < Rank; ++pass) {
    for (std::uint32_t k = 1; k + 1 < Rank; ++k) {
      if (tensor.stride[k - 1] <= tensor.stride[k]) continue;
      cuda::std::swap(tensor.stride[k - 1], tensor.stride[k]);
      cuda::std::swap(tensor.dim[k], tensor.dim[k + 1]);
    }
  }
  bool overlaps = false;
  for (std::uint32_t axis = 1; axis < Rank; ++axis) {
    if (tensor.dim[axis] <= 1) continue;
    overlaps = overlaps || tensor.stride[axis - 1] < extent;
    extent += (tensor.dim[axis] - 1) * tensor.stride[axis - 1];
  }
  return overlaps;
}

/// Whether elements share bytes. The tensor's extents must have no faults.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr bool has_overlap(const side_extents& tensor, std::uint32_t element_bytes) {
  const std::uint64_t row = tensor.dim[0] * element_bytes;
  std::uint64_t extent = row;
  bool is_ordered = true;
  for (std::uint32_t axis = 1; axis < Rank; ++axis) {
    if (tensor.dim[axis] <= 1) continue;
    is_ordered = is_ordered && tensor.stride[axis - 1] >= extent;
    extent += (tensor.dim[axis] - 1) * tensor.stride[axis - 1];
  }
  return !is_ordered && overlaps_in_any_order<Rank>(tensor, row);
}

/// Returns the faults of one side by itself. A side without elements has none.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr std::uint32_t judge_side(const side_extents& tensor, std::uint32_t element_bytes,
                                                    const tensor_limits& limits, bool is_destination) {
  constexpr std::uint32_t extents = bit(ragged::fault::dim) | bit(ragged::fault::stride);
  if (is_empty<Rank>(tensor)) return 0;
  std::uint32_t bits = judge_extents<Rank>(tensor, element_bytes, limits);
  if (is_destination && (bits & extents) == 0 && has_overlap<Rank>(tensor, element_bytes)) {
    bits |= bit(ragged::fault::overlap);
  }
  return bits;
}

/// Returns the bytes that a tensor takes in a packed buffer; 0 if it is bad by itself.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr std::uint64_t packed_bytes(const side_extents& tensor, std::uint32_t element_bytes,
                                                      std::uint64_t packed_alignment, const tensor_limits& limits,
                                                      bool is_destination) {
  if (is_empty<Rank>(tensor) || judge_extents<Rank>(tensor, element_bytes, limits) != 0) return 0;
  if (is_destination && has_overlap<Rank>(tensor, element_bytes)) return 0;
  return round_up_to(bytes_of<Rank>(tensor, element_bytes), packed_alignment);
}

template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr bool has_mismatch(shape_relation relation, const side_extents& source,
                                             const side_extents& destination) {
  if (relation == shape_relation::clipped) return false;
  const bool may_be_smaller = relation == shape_relation::corner;
  bool differs = false;
  for (std::uint32_t axis = 0; axis < Rank; ++axis) {
    std::uint64_t wanted = source.dim[axis];
    if (relation == shape_relation::swapped && axis < 2) wanted = source.dim[1 - axis];
    if (relation == shape_relation::reduced && axis == 0) wanted = 1;
    if (relation == shape_relation::summed && axis == 1) wanted = 1;
    differs = differs || (may_be_smaller ? destination.dim[axis] > wanted : destination.dim[axis] != wanted);
  }
  return differs;
}

/// The blocks of a tensor that `quantize` gives one scale each, and the order of the scales.
struct scale_grid {
  std::uint32_t columns;  ///< of a block, along dim 0; 0: all of a row
  std::uint32_t rows;     ///< of a block, along dim 1
  bool is_transposed;     ///< the scales' dims 0 and 1 are exchanged
};

/// Returns the dims that the scales of a tensor must have.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr side_extents scales_of(const side_extents& source, const scale_grid& grid) {
  side_extents wanted = source;
  wanted.dim[0] = grid.columns == 0 ? 1 : source.dim[0] / grid.columns + (source.dim[0] % grid.columns != 0);
  if (Rank == 1) return wanted;
  wanted.dim[1] = source.dim[1] / grid.rows + (source.dim[1] % grid.rows != 0);
  if (grid.is_transposed) cuda::std::swap(wanted.dim[0], wanted.dim[1]);
  return wanted;
}

/// Returns the bits of a judged pair together with the faults of its scales. An empty tensor has no
/// scales, so nothing is judged.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr std::uint32_t add_scale_faults(std::uint32_t bits, const side_extents& source,
                                                          const side_extents& scales, const scale_grid& grid,
                                                          const tensor_limits& limits) {
  if (bits == ragged::tensor_status::empty_bit) return bits;
  const side_extents wanted = scales_of<Rank>(source, grid);
  bool differs = false;
  for (std::uint32_t axis = 0; axis < Rank; ++axis) differs = differs || scales.dim[axis] != wanted.dim[axis];
  return bits | judge_side<Rank>(scales, sizeof(float), limits, true) | (differs ? bit(ragged::fault::mismatch) : 0);
}

/// Judges by the side or sides that give the shapes.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr bool is_empty_pair(shape_relation relation, const side_extents& source,
                                              const side_extents& destination) {
  if (relation == shape_relation::corner) return is_empty<Rank>(destination);
  if (relation == shape_relation::summed) return source.dim[0] == 0 && is_empty<Rank>(destination);
  const bool source_decides = relation == shape_relation::reduced || relation == shape_relation::clipped;
  return is_empty<Rank>(source) && (source_decides || is_empty<Rank>(destination));
}

TMAP_HOST_DEVICE constexpr bool ends_after(const side_room& room, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t begin = address - room.begin;
  return begin > room.bytes || bytes > room.bytes - begin;
}

/// Whether a tensor without faults does not fit.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr bool is_truncated(const side_extents& source, const side_extents& destination,
                                             const pair_terms& terms) {
  if (terms.relation == shape_relation::clipped) {
    bool is_cut = false;
    for (std::uint32_t axis = 0; axis < Rank; ++axis) is_cut = is_cut || source.dim[axis] > destination.dim[axis];
    return is_cut;
  }
  // Packed sides have the same dims.
  return ends_after(terms.source.room, source.address, bytes_of<Rank>(source, terms.source.element_bytes)) ||
         ends_after(terms.destination.room, destination.address,
                    bytes_of<Rank>(source, terms.destination.element_bytes));
}

/// Returns the faults of both sides and of their shapes, or `truncated` alone.
template <std::uint32_t Rank>
TMAP_HOST_DEVICE constexpr pair_verdict judge_pair(const side_extents& source, const side_extents& destination,
                                                   const pair_terms& terms) {
  const bool is_empty_tensor = is_empty_pair<Rank>(terms.relation, source, destination);
  const bool is_written = terms.relation == shape_relation::clipped || !is_empty_tensor;
  const std::uint32_t written =
      is_written ? judge_side<Rank>(destination, terms.destination.element_bytes, terms.limits, true) : 0;
  const bool has_destination = written == 0;
  if (is_empty_tensor) return {has_destination ? ragged::tensor_status::empty_bit : written, has_destination};
  std::uint32_t bits = written | judge_side<Rank>(source, terms.source.element_bytes, terms.limits, false);
  if (has_mismatch<Rank>(terms.relation, source, destination)) bits |= bit(ragged::fault::mismatch);
  if (bits == 0 && is_truncated<Rank>(source, destination, terms)) bits = bit(ragged::fault::truncated);
  return {bits, has_destination};
}

/// Whether a tensor with this verdict is moved, at least in part.
TMAP_HOST_DEVICE constexpr bool is_moved(std::uint32_t bits, shape_relation relation) {
  return bits == 0 || (relation == shape_relation::clipped && bits == bit(ragged::fault::truncated));
}

}  // namespace tmap::detail
