// SPDX-License-Identifier: Apache-2.0
#pragma once

// Moves bytes between any two addresses by the lanes of a warp, and fills. A *granule* is 16
// aligned bytes of the destination. A lane takes the one or two aligned granules of the source that
// hold its bytes, shifts them into place, and stores the granule. The rest at both ends of a row
// goes byte by byte, so that no byte outside a row is ever read or written.

#include "kernels/ragged/piece_walk.cuh"
#include "kernels/ragged/small_divisor.cuh"

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t granule_bytes = 16;

template <class Unit>
__device__ Unit load_unit(std::uint64_t address) {
  return *reinterpret_cast<const Unit*>(address);
}
template <class Unit>
__device__ void store_unit(std::uint64_t address, const Unit& value) {
  *reinterpret_cast<Unit*>(address) = value;
}

/// Cuts a row of `bytes` into `head` bytes, `granules` whole granules of the destination, and
/// `tail` bytes. Head and tail are less than two granules each. Where the destination is aligned,
/// the source is `shift` bytes past the start of one of its own granules. Both source granules of
/// each destination granule lie within the row.
struct row_cut {
  std::uint32_t head;
  std::uint32_t granules;
  std::uint32_t tail;
  std::uint32_t shift;

  /// Packs the cut into one word, for another lane. Granules are fewer than 2^16.
  __device__ std::uint32_t packed() const { return granules << 16 | shift << 8 | head; }
  __device__ row_cut(std::uint32_t packed, std::uint32_t bytes)
      : head(packed & 0xff),
        granules(packed >> 16),
        tail(bytes - head - granules * granule_bytes),
        shift(packed >> 8 & 0xff) {}
  __device__ row_cut(std::uint64_t destination, std::uint64_t source, std::uint32_t bytes) {
    const std::uint32_t to_aligned = (0u - static_cast<std::uint32_t>(destination)) % granule_bytes;
    head = to_aligned < bytes ? to_aligned : bytes;
    granules = (bytes - head) / granule_bytes;
    tail = (bytes - head) % granule_bytes;
    shift = (static_cast<std::uint32_t>(source) + head) % granule_bytes;
    if (shift > head && granules != 0) {
      head += granule_bytes;
      --granules;
    }
    if (shift != 0 && shift + tail < granule_bytes && granules != 0) {
      tail += granule_bytes;
      --granules;
    }
  }
};

/// Returns bytes `shift` to `shift + 15` of two neighbouring granules. `shift` is below 16.
__device__ inline uint4 shifted(const uint4& low, const uint4& high, std::uint32_t shift) {
  const bool two = (shift & 8) != 0;
  const bool one = (shift & 4) != 0;
  const std::uint32_t w0 = two ? low.z : low.x;
  const std::uint32_t w1 = two ? low.w : low.y;
  const std::uint32_t w2 = two ? high.x : low.z;
  const std::uint32_t w3 = two ? high.y : low.w;
  const std::uint32_t w4 = two ? high.z : high.x;
  const std::uint32_t w5 = two ? high.w : high.y;
  const std::uint32_t v0 = one ? w1 : w0;
  const std::uint32_t v1 = one ? w2 : w1;
  const std::uint32_t v2 = one ? w3 : w2;
  const std::uint32_t v3 = one ? w4 : w3;
  const std::uint32_t v4 = one ? w5 : w4;
  const std::uint32_t bits = (shift & 3) * 8;
  return {__funnelshift_r(v0, v1, bits), __funnelshift_r(v1, v2, bits), __funnelshift_r(v2, v3, bits),
          __funnelshift_r(v3, v4, bits)};
}

/// Head and tail bytes of one row, a byte of each in a lane. They are loaded first and stored
/// later.
class edge_bytes {
 public:
  __device__ void load(std::uint64_t destination, std::uint64_t source, std::uint32_t bytes, const row_cut& cut,
                       std::uint32_t lane) {
    destination_ = destination + lane;
    behind_ = bytes - cut.tail;
    has_head_ = lane < cut.head;
    has_tail_ = lane < cut.tail;
    if (has_head_) head_ = load_unit<std::uint8_t>(source + lane);
    if (has_tail_) tail_ = load_unit<std::uint8_t>(source + behind_ + lane);
  }
  __device__ void store() const {
    if (has_head_) store_unit(destination_, head_);
    if (has_tail_) store_unit(destination_ + behind_, tail_);
  }

 private:
  std::uint64_t destination_;
  std::uint32_t behind_;
  bool has_head_{};
  bool has_tail_{};
  std::uint8_t head_;
  std::uint8_t tail_;
};

/// Moves short rows whose addresses, pitches and bytes are all multiples of `Unit`. Lanes are
/// spread over all units.
template <class Unit>
__device__ void move_units(const row_block& block, std::uint32_t lane) {
  constexpr std::uint32_t batch = 4;
  const std::uint32_t per_row = block.bytes / sizeof(Unit);
  const std::uint32_t units = block.rows * per_row;
  const small_divisor row_of(per_row);
#pragma unroll 1
  for (std::uint32_t i = lane; i < units; i += 32 * batch) {
    Unit values[batch];
    std::uint32_t row[batch];
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) {
      row[k] = row_of(i + 32 * k);
      const std::uint64_t at = block.source + row[k] * block.source_pitch;
      if (i + 32 * k < units) values[k] = load_unit<Unit>(at + (i + 32 * k - row[k] * per_row) * sizeof(Unit));
    }
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) {
      const std::uint64_t at = block.destination + row[k] * block.destination_pitch;
      if (i + 32 * k < units) store_unit(at + (i + 32 * k - row[k] * per_row) * sizeof(Unit), values[k]);
    }
  }
}

/// Returns the packed cut of row `lane` of at most 32 rows.
__device__ inline std::uint32_t cut_of_lane(const row_block& block, std::uint32_t lane) {
  return row_cut(block.destination + lane * block.destination_pitch, block.source + lane * block.source_pitch,
                 block.bytes)
      .packed();
}

/// Numbers the granules of at most 32 rows, row after row. Each row has as many places as whole
/// granules fit in it.
struct granule_grid {
  /// Granule `at` of row `row`.
  struct granule {
    std::uint32_t row;
    std::uint32_t at;
    row_cut cut;  ///< of the row
  };

  std::uint32_t row_bytes;
  std::uint32_t per_row;
  std::uint32_t all;
  small_divisor row_of;

  __device__ explicit granule_grid(const row_block& block)
      : row_bytes(block.bytes), per_row(block.bytes / granule_bytes), all(block.rows * per_row), row_of(per_row) {}

  /// Returns granule number `i`. All lanes call it. `cuts` is each lane's `cut_of_lane`.
  __device__ granule place(std::uint32_t i, std::uint32_t cuts) const {
    const std::uint32_t row = row_of(i);
    return {row, i - row * per_row, row_cut(__shfl_sync(~0u, cuts, static_cast<int>(row)), row_bytes)};
  }
};

/// Holds the ends of a few rows.
class edge_batch {
 public:
  static constexpr std::uint32_t rows = 3;

  /// Loads the ends of rows from `first` on. `cuts` is each lane's `cut_of_lane`.
  __device__ void load(const row_block& block, std::uint32_t first, std::uint32_t cuts, std::uint32_t lane) {
#pragma unroll
    for (std::uint32_t k = 0; k < rows; ++k) {
      const std::uint32_t row = first + k;
      const row_cut cut(__shfl_sync(~0u, cuts, static_cast<int>(row)), block.bytes);
      if (row >= block.rows) break;
      edges_[k].load(block.destination + row * block.destination_pitch, block.source + row * block.source_pitch,
                     block.bytes, cut, lane);
    }
  }
  __device__ void store() const {
#pragma unroll
    for (const edge_bytes& edges : edges_) edges.store();
  }

 private:
  edge_bytes edges_[rows];
};

/// Returns the largest power of two, at most 16, that divides all addresses, pitches and bytes of
/// the rows.
__device__ inline std::uint32_t common_alignment(const row_block& block) {
  std::uint64_t all = block.source | block.destination | block.bytes | granule_bytes;
  if (block.rows > 1) all |= block.source_pitch | block.destination_pitch;
  const auto low = static_cast<std::uint32_t>(all);
  return low & (0u - low);
}

/// Returns the last `bytes` % 16 bytes of each row.
__device__ inline row_block tails_of(const row_block& block) {
  const std::uint32_t whole = block.bytes / granule_bytes * granule_bytes;
  return {block.source + whole, block.destination + whole,  block.source_pitch, block.destination_pitch,
          block.rows,           block.bytes % granule_bytes};
}

/// Holds every phase of a repeated element: granule `phase` begins at that byte of it.
struct fill_granules {
  uint4 at[granule_bytes];

  /// At least 256 threads call it before a block barrier.
  __device__ void write(const unsigned char* element, std::uint32_t element_bytes) {
    auto* const bytes = reinterpret_cast<unsigned char*>(at);
    if (threadIdx.x < sizeof(at)) {
      const std::uint32_t phase = threadIdx.x / granule_bytes + threadIdx.x % granule_bytes;
      bytes[threadIdx.x] = element[phase % element_bytes];
    }
  }
  __device__ std::uint8_t byte(std::uint32_t phase) const {
    return reinterpret_cast<const std::uint8_t*>(&at[phase])[0];
  }
};

/// Fills the whole granules of one row. Its elements divide a granule, so all granules are the
/// same.
__device__ inline void fill_granules_of(const row_block& block, const fill_granules& fill, std::uint32_t element_bytes,
                                        std::uint32_t lane) {
  const row_cut cut(block.destination, block.destination, block.bytes);
  const uint4 value = fill.at[cut.head % element_bytes];
  const std::uint64_t first = block.destination + cut.head;
#pragma unroll 4
  for (std::uint32_t i = lane; i < cut.granules; i += 32) store_unit(first + i * granule_bytes, value);
}

/// Fills rows with repetitions of the element. One warp calls it. Each row begins with a whole
/// element.
__device__ inline void fill_rows(const row_block& block, const fill_granules& fill, std::uint32_t element_bytes,
                                 std::uint32_t lane) {
  const small_divisor element_of(element_bytes);
  const auto phase_of = [&](std::uint32_t offset) { return offset - element_of(offset) * element_bytes; };
  const std::uint32_t per_row = block.bytes / granule_bytes;
  if (block.rows == 1 && granule_bytes % element_bytes == 0) {
    fill_granules_of(block, fill, element_bytes, lane);
  } else if (per_row != 0) {
    const small_divisor row_of(per_row);
#pragma unroll 2
    for (std::uint32_t i = lane; i < block.rows * per_row; i += 32) {
      const std::uint32_t row = row_of(i);
      const std::uint64_t destination = block.destination + row * block.destination_pitch;
      const row_cut cut(destination, destination, block.bytes);
      const std::uint32_t offset = cut.head + (i - row * per_row) * granule_bytes;
      if (i - row * per_row < cut.granules) store_unit(destination + offset, fill.at[phase_of(offset)]);
    }
  }
#pragma unroll 1
  for (std::uint32_t row = lane / 16; row < block.rows; row += 2) {
    const std::uint64_t destination = block.destination + row * block.destination_pitch;
    const row_cut cut(destination, destination, block.bytes);
    const std::uint32_t head = lane % 16;
    const std::uint32_t tail = block.bytes - cut.tail + lane % 16;
    if (head < cut.head) store_unit(destination + head, fill.byte(phase_of(head)));
    if (lane % 16 < cut.tail) store_unit(destination + tail, fill.byte(phase_of(tail)));
  }
}

}  // namespace tmap::kernels
