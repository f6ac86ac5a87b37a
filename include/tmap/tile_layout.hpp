// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Computes the place of each element of a tile in shared memory, for host and device. The copy
/// engine puts the rows of a tile `tile_row_pitch_bytes` apart. With a swizzle it then exchanges
/// chunks of 16 bytes, within 128 bytes, by bits of the shared *address*. So the place of an
/// element depends on the address of the tile. In a tile that is aligned to one repeat of the
/// pattern, `shared_alignment(swizzle)`, elements always have the same offsets. (PTX ISA 5.5.7;
/// docs/measurements/copy_engine_semantics.md)

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap {

/// Returns the shared address of the byte that would be at `address` without a swizzle, for the
/// modes of compute capability 9.0 (those with atoms have other patterns). The function is its own
/// inverse, and the 16 bytes of a chunk stay together. `Address` is an unsigned integer.
template <class Address>
TMAP_HOST_DEVICE constexpr Address swizzled(Address address, swizzle mode) {
  const std::uint32_t span = swizzle_span_bytes(mode);
  return span == 0 ? address : address ^ (address >> 3 & (span - 16));
}

/// The layout of a tile in shared memory. A plain value; `layout_of` makes it.
struct tile_layout {
  /// Extents of the tile, innermost first and 1 beyond its rank. [0] counts elements. With an
  /// interleave these are the channels of its units, unit by unit: element c of unit x is at x *
  /// (unit bytes / element bytes) + c.
  std::uint32_t dim[max_rank]{1, 1, 1, 1, 1};
  std::uint32_t element_bytes{};
  std::uint32_t row_pitch_bytes{};  ///< from row to row, before the swizzle
  tmap::swizzle swizzle{};

  TMAP_HOST_DEVICE constexpr std::uint32_t elements() const { return dim[0] * dim[1] * dim[2] * dim[3] * dim[4]; }

  /// Returns the bytes from the begin of the tile to the element at `at`, coordinates in the tile,
  /// innermost first. The tile begins at `shared_address`, a multiple of 128. All multiples of
  /// `shared_alignment(swizzle)` give the same result as 0.
  template <std::uint32_t Rank>
  TMAP_HOST_DEVICE constexpr std::uint32_t offset(const std::uint32_t (&at)[Rank],
                                                  std::uint32_t shared_address = 0) const {
    static_assert(1 <= Rank && Rank <= max_rank);
    std::uint32_t row = 0;
    for (std::uint32_t axis = Rank - 1; axis > 0; --axis) row = row * dim[axis] + at[axis];
    const std::uint32_t plain = row * row_pitch_bytes + at[0] * element_bytes;
    return swizzled(shared_address + plain, swizzle) - shared_address;
  }
};

/// Returns the layout of the tiles that maps of `spec` move. `spec` must break no rule of compute
/// capability 9.0.
TMAP_HOST_DEVICE constexpr tile_layout layout_of(const tensor_spec& spec) {
  tile_layout layout;
  layout.element_bytes = static_cast<std::uint32_t>(element_bytes(spec.type));
  layout.row_pitch_bytes = static_cast<std::uint32_t>(tile_row_pitch_bytes(spec));
  layout.swizzle = spec.swizzle;
  layout.dim[0] = static_cast<std::uint32_t>(tile_row_bytes(spec) / element_bytes(spec.type));
  for (std::uint32_t axis = 1; axis < spec.rank && axis < max_rank; ++axis) layout.dim[axis] = tile_dim(spec, axis);
  return layout;
}

/// A tile in shared memory, or in a buffer of the host that stands for it: `view(x0, x1, ...)` is
/// the element at these coordinates in the tile, innermost first. A value that owns nothing. `T`
/// has the size of the layout's elements and may be const. If the layout is a constant, the
/// compiler folds it.
template <class T, std::uint32_t Rank>
class tile_view {
  static_assert(1 <= Rank && Rank <= max_rank);

 public:
  using address = std::conditional_t<std::is_const_v<T>, const void*, void*>;

  /// `begin` is aligned to `shared_alignment` of the layout's swizzle, which a debug build asserts
  /// in shared memory; on the host, where a buffer stands for an aligned tile, to `alignof(T)`
  /// only.
  TMAP_HOST_DEVICE tile_view(address begin, const tile_layout& layout) : begin_(begin), layout_(layout) {
#if defined(__CUDA_ARCH__)
    assert(!__isShared(begin) || __cvta_generic_to_shared(begin) % shared_alignment(layout.swizzle) == 0);
#endif
  }

  /// Coordinates must be below the tile's extents (`layout().dim`). They are not checked.
  template <class... At, std::enable_if_t<sizeof...(At) == Rank, int> = 0>
  TMAP_HOST_DEVICE T& operator()(At... at) const {
    return element({static_cast<std::uint32_t>(at)...});
  }

  /// Returns element `i` of the tile in the order of coordinates, innermost first. With a swizzle
  /// this is not its place in shared memory.
  TMAP_HOST_DEVICE T& operator[](std::uint32_t i) const {
    std::uint32_t at[Rank];
    for (std::uint32_t axis = 0; axis < Rank; ++axis) {
      at[axis] = i % layout_.dim[axis];
      i /= layout_.dim[axis];
    }
    return element(at);
  }

  TMAP_HOST_DEVICE constexpr const tile_layout& layout() const {
    return layout_;
  }

 private:
  using byte = std::conditional_t<std::is_const_v<T>, const unsigned char, unsigned char>;

  TMAP_HOST_DEVICE T& element(const std::uint32_t (&at)[Rank]) const {
    return *reinterpret_cast<T*>(static_cast<byte*>(begin_) + layout_.offset(at));
  }

  address begin_;
  tile_layout layout_;
};

}  // namespace tmap
