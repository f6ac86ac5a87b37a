// SPDX-License-Identifier: Apache-2.0
#pragma once

// Assigns tiles to blocks: each block walks its share of all tiles, group by group.

#include <tmap/device/tile_shares.cuh>

#include <cstdint>

#include "apps/samples/group_maps/group.hpp"

namespace group_maps {

struct group_list {
  const group* groups;
  std::uint32_t count;
  std::uint32_t tiles;  ///< over all groups

  TMAP_HOST_DEVICE tmap::device::tile_range share(std::uint32_t block, std::uint32_t blocks) const {
    return tmap::device::tile_shares(tiles, blocks).run(block);
  }
};

/// Returns the first group that ends after `tile`, which must exist.
TMAP_HOST_DEVICE inline std::uint32_t find_group(const group_list& in, std::uint32_t tile) {
  std::uint32_t low = 0;
  for (std::uint32_t high = in.count - 1; low < high;) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (in.groups[middle].end_tile > tile) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// Walks through the tiles `mine` and stops once at each group that has some of them. At each stop,
/// the caller lets the walk read the next group at a convenient time, so that a change of group
/// does not wait for memory.
class group_walk {
 public:
  TMAP_HOST_DEVICE group_walk(const group_list& groups, const tmap::device::tile_range& mine)
      : groups_(groups), tile_(static_cast<std::uint32_t>(mine.first)), last_(static_cast<std::uint32_t>(mine.last)) {
    if (is_done()) return;
    index_ = find_group(groups_, tile_);
    now_ = groups_.groups[index_];
  }

  TMAP_HOST_DEVICE bool is_done() const { return tile_ >= last_; }
  TMAP_HOST_DEVICE std::uint32_t index() const { return index_; }
  TMAP_HOST_DEVICE const group& now() const { return now_; }
  /// Returns the first tile of the current group in this walk.
  TMAP_HOST_DEVICE std::uint32_t first_tile() const { return tile_; }
  TMAP_HOST_DEVICE std::uint32_t end_tile() const { return now_.end_tile < last_ ? now_.end_tile : last_; }
  /// Returns the row of the group at which `tile` begins.
  TMAP_HOST_DEVICE std::uint32_t row_of(std::uint32_t tile) const { return (tile - now_.first_tile) * box_rows; }

  TMAP_HOST_DEVICE void read_ahead() {
    if (index_ + 1 < groups_.count) ahead_ = groups_.groups[index_ + 1];
  }

  /// Goes to the next group that has tiles. `read_ahead` must have been called.
  TMAP_HOST_DEVICE void next_group() {
    tile_ = end_tile();
    if (is_done()) return;
    ++index_;
    now_ = ahead_;
    while (now_.end_tile == now_.first_tile) now_ = groups_.groups[++index_];
  }

 private:
  group_list groups_;
  std::uint32_t tile_;
  std::uint32_t last_;
  std::uint32_t index_{};
  group now_{};
  group ahead_{};
};

}  // namespace group_maps
