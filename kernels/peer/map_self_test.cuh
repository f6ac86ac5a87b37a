// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tests maps of tensors on other ranks: a warp makes one for each rank, tiles are stored, added and
// loaded through them, and bytes are added without a map. No document of CUDA promises that maps
// work on addresses of peers. A link has no tiles, so this test does not run in the model. Its
// barriers do.

#include <tmap/device/acquire.cuh>
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/peer_link.cuh>
#include <tmap/device/reduce_copy.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/map_template.hpp>

#include "kernels/peer/map_test_area.hpp"

namespace tmap::kernels::peer {

/// The shared memory of the test.
struct map_test_memory {
  device::warp_stage stage;
  alignas(128) float sent[test_tile_values];
  alignas(128) float back[test_tile_values];
  device::tile_barrier loads;  ///< must be ready, by `init(1)`
};

/// Holds one rank's part of the test. All lanes of a warp make the maps, then one thread runs it.
class map_test_run {
 public:
  __device__ map_test_run(device::peer_link& link, const peer_memory_ref& window, map_test_memory& memory)
      : link_(link), window_(window), memory_(memory) {}

  /// Makes the maps of the tensors on all ranks. `base` has their shape and no address.
  __device__ void make_maps(const map_template& base) const {
    const device::map_guard trusted{.page = nullptr, .trusted = true};  // the host has checked the windows
    const auto patch_of = [&](std::uint64_t rank) {
      map_patch patch{};
      patch.global_address = window_.windows[rank] + tensor_at;
      return patch;
    };
    device::encode_warp(base, patch_of, slots(), 0, link_.ranks(), memory_.stage, trusted,
                        device::fixed_shape<2, patch_address>{});
  }

  /// Returns the verdict, which names a rank whose bytes were wrong. No rank is in an exchange.
  __device__ peer_verdict run(std::uint64_t deadline) {
    prepare();
    peer_verdict met = barrier(link_, deadline);
    if (met.status != peer_status::ok) return met;
    salt_ = link_.load(link_.rank(), offsetof(window_header, barriers)) % 256;
    send();
    met = barrier(link_, deadline);
    if (met.status != peer_status::ok) return met;
    const peer_verdict found = judge();
    met = barrier(link_, deadline);  // all have read
    if (met.status != peer_status::ok) return met;
    clear();
    met = barrier(link_, deadline);  // no rank announces here before all have cleared
    return met.status == peer_status::ok ? found : met;
  }

 private:
  static constexpr std::uint64_t tensor_at = map_test_at + offsetof(map_test_area, tensor),
                                 sums_at = map_test_at + offsetof(map_test_area, sums);
  static constexpr float untouched = -1;  // lies around the tensor, and stays there

  __device__ tensor_map* slots() const {
    return reinterpret_cast<tensor_map*>(window_.windows[link_.rank()] + map_test_at);
  }
  __device__ device::acquired_map map_of(std::uint32_t rank) const { return device::acquire(slots() + rank); }

  /// Returns value `i` of the tile that a rank sends. These are integers, and so small that the sum
  /// over all ranks is exact.
  __device__ float number(std::uint32_t rank, std::uint32_t i) const {
    return static_cast<float>((salt_ * max_group_ranks + rank) * test_tile_values + i);
  }
  __device__ float sum(std::uint32_t i) const {
    float all = 0;
    for (std::uint32_t rank = 0; rank < link_.ranks(); ++rank) all += number(rank, i);
    return all;
  }

  /// Returns the number of the tile to which all ranks add. The tiles before it are a rank's each.
  __device__ std::uint32_t sum_tile() const { return link_.ranks(); }
  static __device__ std::int32_t row_of(std::uint32_t tile) { return static_cast<std::int32_t>(tile * test_tile_rows); }
  __device__ bool is_inside(std::uint32_t tile, std::uint32_t i) const {
    const bool has_row = tile != sum_tile() || i / test_tile_columns + 1 < test_tile_rows;
    return has_row && i % test_tile_columns < test_tensor_columns;
  }
  /// Returns value `i` of a tile that all have sent to, or `outside` where there is no tensor.
  __device__ float value_of(std::uint32_t tile, std::uint32_t i, float outside) const {
    if (!is_inside(tile, i)) return outside;
    return tile == sum_tile() ? sum(i) : number(tile, i);
  }

  static __device__ std::uint64_t place(std::uint32_t tile, std::uint32_t i) {
    return word_at(tensor_at, std::uint64_t{tile} * test_tile_values + i);
  }
  __device__ float load(std::uint64_t offset) const { return __uint_as_float(link_.load(link_.rank(), offset)); }
  __device__ void store(std::uint64_t offset, float value) const {
    link_.store(link_.rank(), offset, __float_as_uint(value));
  }

  /// Leaves zeros, as if no packet had come here.
  __device__ void clear() const {
    for (std::uint64_t at = map_test_at; at < map_test_at + sizeof(map_test_area); at += word_bytes) {
      link_.store(link_.rank(), at, 0);
    }
  }
  /// Prepares what all ranks will send to.
  __device__ void prepare() const {
    for (std::uint32_t tile = 0; tile <= sum_tile(); ++tile) {
      for (std::uint32_t i = 0; i < test_tile_values; ++i) {
        store(place(tile, i), tile == sum_tile() && is_inside(tile, i) ? 0 : untouched);
      }
    }
    for (std::uint32_t i = 0; i < test_tile_values; ++i) store(word_at(sums_at, i), 0);
  }

  /// Starts a store of the tile of this rank at all ranks, and both additions. The next barrier
  /// waits for them.
  __device__ void send() const {
    for (std::uint32_t i = 0; i < test_tile_values; ++i) memory_.sent[i] = number(link_.rank(), i);
    device::fence_shared_writes();
    for (std::uint32_t i = 0; i < link_.ranks(); ++i) {
      const std::uint32_t peer = rank_in_turn(link_, i);
      const device::acquired_map map = map_of(peer);
      device::store_tile(map, {0, row_of(link_.rank())}, memory_.sent);
      device::reduce_tile<reduction::add, element_type::f32>(map, {0, row_of(sum_tile())}, memory_.sent);
      auto* const sums = reinterpret_cast<float*>(window_.windows[peer] + sums_at);
      device::reduce_bytes<reduction::add>(sums, memory_.sent, sizeof(memory_.sent));
    }
  }

  /// Returns whether a tile is right in this rank's memory, and the memory around it.
  __device__ bool came(std::uint32_t tile) const {
    for (std::uint32_t i = 0; i < test_tile_values; ++i) {
      if (load(place(tile, i)) != value_of(tile, i, untouched)) return false;
    }
    return true;
  }
  __device__ bool sums_came() const {
    for (std::uint32_t i = 0; i < test_tile_values; ++i) {
      if (load(word_at(sums_at, i)) != sum(i)) return false;
    }
    return true;
  }
  /// Returns whether a tile is right as it comes from a rank. A load fills what is outside with 0.
  __device__ bool comes_back(std::uint32_t peer, std::uint32_t tile) {
    memory_.loads.arrive_expect(sizeof(memory_.back));
    device::load_tile(memory_.back, map_of(peer), {0, row_of(tile)}, memory_.loads);
    memory_.loads.wait(parity_);
    parity_ ^= 1;
    for (std::uint32_t i = 0; i < test_tile_values; ++i) {
      if (memory_.back[i] != value_of(tile, i, 0)) return false;
    }
    return true;
  }

  /// Judges what is here, then what the others have. A wrong sum does not show who added wrongly,
  /// so it is that of the rank where it lies.
  __device__ peer_verdict judge() {
    const std::uint32_t me = link_.rank();
    for (std::uint32_t peer = 0; peer < link_.ranks(); ++peer) {
      if (!came(peer)) return {peer_status::wrong_bytes, peer, protocol_step::none};
    }
    if (!came(sum_tile()) || !sums_came()) return {peer_status::wrong_bytes, me, protocol_step::none};
    for (std::uint32_t i = 0; i < link_.ranks(); ++i) {
      const std::uint32_t peer = rank_in_turn(link_, i);
      if (!comes_back(peer, me) || !comes_back(peer, sum_tile())) {
        return {peer_status::wrong_bytes, peer, protocol_step::none};
      }
    }
    return {};
  }

  device::peer_link& link_;
  const peer_memory_ref& window_;
  map_test_memory& memory_;
  std::uint32_t salt_{};  // differs from test to test; all ranks have the same
  std::uint32_t parity_{};
};

/// Tests maps of tensors on other ranks. All lanes of a warp call it, of every rank. The first one
/// returns the verdict. Signals go by the link, maps by `window`.
__device__ inline peer_verdict self_test_maps(device::peer_link& link, const peer_memory_ref& window,
                                              const map_template& base, map_test_memory& memory,
                                              std::uint64_t deadline) {
  map_test_run test(link, window, memory);
  test.make_maps(base);
  return device::lane_index() == 0 ? test.run(deadline) : peer_verdict{};
}

}  // namespace tmap::kernels::peer
