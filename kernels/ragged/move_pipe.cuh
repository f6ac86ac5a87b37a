// SPDX-License-Identifier: Apache-2.0
#pragma once

// A warp's ring of stages in shared memory, through which the copy engine moves pieces. Loads run
// ahead. Each stage is stored when it is full, and filled again when that store has read it. No
// other warp takes part, so the only barriers are those that loads complete on.

#include "kernels/ragged/granule.cuh"

#include <tmap/device/acquire.cuh>
#include <tmap/device/async_copy.cuh>
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cstdint>
#include <new>

namespace tmap::kernels {

inline constexpr std::uint32_t piece_bytes = 4096;
inline constexpr std::uint32_t stage_bytes = piece_bytes + line_bytes;  // `cut_at_lines`
inline constexpr std::uint32_t block_warps = 16;
inline constexpr std::uint32_t block_threads = 32 * block_warps;
inline constexpr std::uint32_t warp_stages = 3;
/// The number of loads in flight before the warp waits for the oldest.
inline constexpr std::uint32_t loads_ahead = 2;

/// Shorter rows have hardly a granule between their ends.
inline constexpr std::uint32_t least_shifted_row_bytes = 48;

/// The content of a stage, which decides how it is stored.
enum class stage_content : std::uint32_t {
  bulk_rows,    ///< loaded and stored by bulk copies
  box,          ///< loaded and stored through maps
  units,        ///< loaded by LDGSTS, stored by the lanes, `unit` bytes at once
  source_rows,  ///< the source's granules, loaded by LDGSTS, to be shifted and stored by the lanes
};

struct stage_order {
  row_block block;  ///< its rows follow each other in the stage, each cut to whole granules except for `units`
  stage_content content;
  std::uint32_t unit;
  std::int32_t coordinates[max_rank];  ///< of a box
};

/// Both maps of a tensor. The lane that acquires makes it.
struct acquired_maps {
  device::acquired_map source;
  device::acquired_map destination;
};

struct alignas(128) warp_stage_memory {
  unsigned char bytes[warp_stages][stage_bytes];
};

/// The state that a warp keeps in shared memory in addition to its stages. Each stage has its maps,
/// as a box may be stored when the next tensor's boxes are loaded.
struct warp_state {
  planned_tensor record;
  device::tile_barrier full[warp_stages];
  stage_order orders[warp_stages];
  alignas(acquired_maps) unsigned char maps[warp_stages][sizeof(acquired_maps)];

  __device__ const acquired_maps& maps_of(std::uint32_t stage) const {
    return *reinterpret_cast<const acquired_maps*>(maps[stage]);
  }
};

/// Sets the coordinates of box `within`, and returns the number of elements of a box.
static __noinline__ __device__ std::uint32_t place_box(const planned_tensor& tensor, const piece_rule& rule,
                                                       std::uint64_t within, std::int32_t* coordinates) {
  std::uint32_t elements = 1;
#pragma unroll 1
  for (std::uint32_t axis = 0; axis < rule.map_rank; ++axis) {
    const std::uint32_t box = rule.box_dim[axis];
    const std::uint64_t boxes = detail::divide(tensor.dim[axis] + box - 1, box);
    const std::uint64_t above = detail::divide(within, boxes);
    coordinates[axis] = static_cast<std::int32_t>((within - above * boxes) * box);
    within = above;
    elements *= box;
  }
  return elements;
}

/// All lanes make the same calls.
class move_pipe {
 public:
  __device__ move_pipe(warp_state& state, warp_stage_memory& memory, std::uint32_t map_rank)
      : state_(state), memory_(memory), map_rank_(map_rank), lane_(threadIdx.x % 32) {
    if (lane_ == 0) {
      for (device::tile_barrier& barrier : state_.full) barrier.init(1);
      device::fence_barrier_init();
    }
    __syncwarp();
  }

  /// Moves rows of at most `stage_bytes` altogether by a route that suits them, which is not
  /// `tensor_map`.
  __device__ void move(row_block block, route way) {
    if (way == route::bulk) {
      move_bulk(block);
      block = tails_of(block);
      if (block.bytes == 0) return;
    }
    const std::uint32_t unit = common_alignment(block);
    const bool is_short = block.bytes < least_shifted_row_bytes;
    if (unit == 16 || (unit >= 4 && (way == route::ldgsts || is_short))) return move_units_async(block, unit);
    if (!is_short) {
      const std::uint32_t rows = block.rows;
      for (std::uint32_t first = 0; first < rows; first += 32) {
        block.rows = rows - first < 32 ? rows - first : 32;
        move_shifted(block);
        block.source += 32 * block.source_pitch;
        block.destination += 32 * block.destination_pitch;
      }
      return;
    }
    if (unit == 2) return move_units<std::uint16_t>(block, lane_);
    move_units<std::uint8_t>(block, lane_);
  }

  /// Starts moving box number `within` of a tensor through maps[0] and maps[1].
  __device__ void move_box(const planned_tensor& tensor, const tensor_map* maps, const piece_rule& rule,
                           std::uint32_t element_bytes, std::uint64_t within) {
    const std::uint32_t stage = begin_load();
    // An acquire waits for its lane's stores, and lane 0 stores boxes.
    if (lane_ == 1) enter_maps(maps, stage);
    maps_ = maps;
    map_stage_ = stage;
    if (lane_ == 0) {
      stage_order& order = state_.orders[stage];
      const std::uint32_t bytes = place_box(tensor, rule, within, order.coordinates) * element_bytes;
      order.content = stage_content::box;
      state_.full[stage].arrive_expect(bytes);
    }
    __syncwarp();
    if (lane_ == 0) with_rank([&](auto rank) { load_box<rank()>(stage); });
    end_load();
  }

  /// Stores the same bytes of shared memory, which must stay unchanged, to all rows. Destinations
  /// and pitches are multiples of 16. The last `bytes` % 16 bytes of each row are left out.
  __device__ void repeat(const row_block& block, const void* shared) const {
    const std::uint32_t bytes = block.bytes / granule_bytes * granule_bytes;
#pragma unroll 1
    for (std::uint32_t row = lane_; row < block.rows; row += 32) {
      device::store_bytes(reinterpret_cast<void*>(block.destination + row * block.destination_pitch), shared, bytes);
    }
    device::commit_stores();
  }

  /// Stores all that is loaded. Afterwards all of it is in global memory.
  __device__ void drain() {
    while (in_flight_ != 0) store_oldest();
    device::wait_stores_written();
  }

 private:
  template <std::uint32_t Value>
  struct constant {
    __device__ constexpr std::uint32_t operator()() const { return Value; }
  };
  template <class Work>
  __device__ void with_rank(const Work& work) const {
    switch (map_rank_) {
      case 1: return work(constant<1>{});
      case 2: return work(constant<2>{});
      case 3: return work(constant<3>{});
      case 4: return work(constant<4>{});
      default: return work(constant<5>{});
    }
  }

  // Addresses and pitches are multiples of 16. The last `bytes` % 16 bytes of each row are left
  // out.
  __device__ void move_bulk(row_block block) {
    block.bytes = block.bytes / granule_bytes * granule_bytes;
    if (block.bytes == 0) return;
    const std::uint32_t stage = begin_load();
    if (lane_ == 0) {
      give_order(stage, stage_content::bulk_rows, block, 0);
      state_.full[stage].arrive_expect(block.rows * block.bytes);
    }
    __syncwarp();
#pragma unroll 1
    for (std::uint32_t row = lane_; row < block.rows; row += 32) {
      device::load_bytes(memory_.bytes[stage] + row * block.bytes,
                         reinterpret_cast<const void*>(block.source + row * block.source_pitch), block.bytes,
                         state_.full[stage]);
    }
    end_load();
  }

  // Addresses, pitches and bytes are multiples of `unit`, which is 4, 8 or 16.
  __device__ void move_units_async(const row_block& block, std::uint32_t unit) {
    const std::uint32_t stage = begin_load();
    if (lane_ == 0) give_order(stage, stage_content::units, block, unit);
    if (unit == 16) load_units<uint4>(block, stage);
    if (unit == 8) load_units<uint2>(block, stage);
    if (unit == 4) load_units<std::uint32_t>(block, stage);
    end_load();
  }

  // Moves at most 32 rows of any alignment. Their ends bypass the stage; those of the first rows
  // are on their way while an older stage is stored.
  __device__ void move_shifted(const row_block& block) {
    const std::uint32_t stage = begin_load();
    if (lane_ == 0) give_order(stage, stage_content::source_rows, block, 0);
    const std::uint32_t cuts = cut_of_lane(block, lane_);
    load_shifted(block, stage, cuts);
    device::commit_copies();
#pragma unroll 1
    for (std::uint32_t row = edge_batch::rows; row < block.rows; row += edge_batch::rows) {
      edge_batch edges;
      edges.load(block, row, cuts, lane_);
      edges.store();
    }
    edge_batch edges;
    edges.load(block, 0, cuts, lane_);
    end_load_committed();
    edges.store();
  }
  __device__ void load_shifted(const row_block& block, std::uint32_t stage, std::uint32_t cuts) {
    const granule_grid grid(block);
#pragma unroll 2
    for (std::uint32_t first = 0; first < grid.all; first += 32) {
      const std::uint32_t i = first + lane_;
      const auto [row, at, cut] = grid.place(i, cuts);
      const std::uint64_t from = block.source + row * block.source_pitch + (cut.head - cut.shift + at * granule_bytes);
      const bool has_two = cut.shift != 0 && cut.granules != 0;
      if (i < grid.all && at < cut.granules + (has_two ? 1 : 0)) {
        device::copy_async<granule_bytes>(memory_.bytes[stage] + i * granule_bytes,
                                          reinterpret_cast<const void*>(from));
      }
    }
  }

  __device__ void enter_maps(const tensor_map* maps, std::uint32_t stage) {
    if (maps == maps_) {
      ::new (state_.maps[stage]) acquired_maps(state_.maps_of(map_stage_));
      return;
    }
    const acquired_maps both{device::acquire(maps), device::acquire(maps + 1)};
    device::prefetch(both.destination);
    ::new (state_.maps[stage]) acquired_maps(both);
  }

  template <std::uint32_t Rank>
  __device__ void load_box(std::uint32_t stage) {
    std::int32_t at[Rank];
    for (std::uint32_t axis = 0; axis < Rank; ++axis) at[axis] = state_.orders[stage].coordinates[axis];
    device::load_tile<Rank>(memory_.bytes[stage], state_.maps_of(stage).source, at, state_.full[stage]);
  }
  template <std::uint32_t Rank>
  __device__ void store_box(std::uint32_t stage) {
    std::int32_t at[Rank];
    for (std::uint32_t axis = 0; axis < Rank; ++axis) at[axis] = state_.orders[stage].coordinates[axis];
    device::store_tile<Rank>(state_.maps_of(stage).destination, at, memory_.bytes[stage]);
  }

  __device__ void give_order(std::uint32_t stage, stage_content content, const row_block& block, std::uint32_t unit) {
    stage_order& order = state_.orders[stage];
    order.block = block;
    order.content = content;
    order.unit = unit;
  }

  template <class Unit>
  __device__ void load_units(const row_block& block, std::uint32_t stage) {
    const std::uint32_t per_row = block.bytes / sizeof(Unit);
    const small_divisor row_of(per_row);
#pragma unroll 4
    for (std::uint32_t i = lane_; i < block.rows * per_row; i += 32) {
      const std::uint32_t row = row_of(i);
      const std::uint64_t from = block.source + row * block.source_pitch + (i - row * per_row) * sizeof(Unit);
      device::copy_async<sizeof(Unit)>(memory_.bytes[stage] + i * sizeof(Unit), reinterpret_cast<const void*>(from));
    }
  }
  // Each lane stores what it loaded.
  template <class Unit>
  __device__ void store_units(const row_block& block, const unsigned char* bytes) {
    const std::uint32_t per_row = block.bytes / sizeof(Unit);
    const small_divisor row_of(per_row);
#pragma unroll 4
    for (std::uint32_t i = lane_; i < block.rows * per_row; i += 32) {
      const std::uint32_t row = row_of(i);
      const std::uint64_t to = block.destination + row * block.destination_pitch + (i - row * per_row) * sizeof(Unit);
      store_unit(to, reinterpret_cast<const Unit*>(bytes)[i]);
    }
  }
  __device__ void store_shifted(const row_block& block, const unsigned char* bytes) {
    const std::uint32_t cuts = cut_of_lane(block, lane_);
    const granule_grid grid(block);
    const auto* const granules = reinterpret_cast<const uint4*>(bytes);
#pragma unroll 2
    for (std::uint32_t first = 0; first < grid.all; first += 32) {
      const std::uint32_t i = first + lane_;
      const auto [row, at, cut] = grid.place(i, cuts);
      if (i >= grid.all || at >= cut.granules) continue;
      const uint4 low = granules[i];
      const uint4 high = cut.shift == 0 ? low : granules[i + 1];
      store_unit(block.destination + row * block.destination_pitch + (cut.head + at * granule_bytes),
                 shifted(low, high, cut.shift));
    }
  }
  __device__ void store_bulk(const row_block& block, const unsigned char* bytes) {
#pragma unroll 1
    for (std::uint32_t row = lane_; row < block.rows; row += 32) {
      device::store_bytes(reinterpret_cast<void*>(block.destination + row * block.destination_pitch),
                          bytes + row * block.bytes, block.bytes);
    }
  }

  __device__ void store_copied(const stage_order& order, const unsigned char* bytes) {
    if (in_flight_ > loads_ahead) {
      device::wait_copies<loads_ahead>();
    } else {
      device::wait_copies<0>();
    }
    __syncwarp();
    if (order.content == stage_content::source_rows) {
      store_shifted(order.block, bytes);
    } else if (order.unit == 16) {
      store_units<uint4>(order.block, bytes);
    } else if (order.unit == 8) {
      store_units<uint2>(order.block, bytes);
    } else {
      store_units<std::uint32_t>(order.block, bytes);
    }
    device::fence_shared_writes();
  }
  __device__ void store_loaded(const stage_order& order, std::uint32_t stage) {
    phases_.wait_full(state_.full[stage], stage);
    if (order.content == stage_content::bulk_rows) {
      store_bulk(order.block, memory_.bytes[stage]);
    } else if (lane_ == 0) {
      with_rank([&](auto rank) { store_box<rank()>(stage); });
    }
  }

  __device__ std::uint32_t begin_load() {
    device::wait_stores_read<warp_stages - 1 - loads_ahead>();
    __syncwarp();
    return next_stage_;
  }
  __device__ void end_load() {
    device::commit_copies();
    end_load_committed();
  }
  __device__ void end_load_committed() {
    __syncwarp();
    next_stage_ = next_stage_ + 1 == warp_stages ? 0 : next_stage_ + 1;
    if (++in_flight_ > loads_ahead) store_oldest();
  }

  __device__ void store_oldest() {
    const std::uint32_t stage = next_stage_ - in_flight_ + (next_stage_ < in_flight_ ? warp_stages : 0);
    const stage_order& order = state_.orders[stage];
    if (order.content == stage_content::units || order.content == stage_content::source_rows) {
      store_copied(order, memory_.bytes[stage]);
    } else {
      store_loaded(order, stage);
    }
    device::commit_stores();
    --in_flight_;
  }

  warp_state& state_;
  warp_stage_memory& memory_;
  const tensor_map* maps_{};
  std::uint32_t map_rank_;
  std::uint32_t lane_;
  std::uint32_t map_stage_{0};
  std::uint32_t next_stage_{0};  ///< to be loaded
  std::uint32_t in_flight_{0};   ///< stages loaded and not yet stored
  device::stage_phases phases_;
};

}  // namespace tmap::kernels
