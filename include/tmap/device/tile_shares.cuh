// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the tiles of a ragged batch are shared out. They are cut into runs of consecutive tiles, of
// equal length but for one tile; how many tiles there are is known on the device only, how many
// runs is chosen on the host.
//
// - Static: as many runs as workers, worker w takes run w. Fewest changes of tensor, no atomics.
// - Interleaved: more runs than workers, worker w takes runs w, w + workers, ...
// - By a queue (work_queue.cuh): more runs than workers, each taken by whoever is free.
//
// Which wins when: work_queue.cuh.

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

namespace tmap::device {

/// Tiles `first` to `last - 1`.
struct tile_range {
  std::uint64_t first;
  std::uint64_t last;
};

/// `tiles` tiles, cut into `runs` runs of which the first ones are a tile longer. `runs` is at
/// least 1.
class tile_shares {
 public:
  TMAP_HOST_DEVICE constexpr tile_shares(std::uint64_t tiles, std::uint64_t runs)
      : each_(tiles / runs), extra_(tiles % runs), runs_(runs) {}

  /// Run `r`, empty from `used()` on.
  TMAP_HOST_DEVICE constexpr tile_range run(std::uint64_t r) const {
    const std::uint64_t first = each_ * r + (r < extra_ ? r : extra_);
    return {first, first + each_ + (r < extra_ ? 1 : 0)};
  }

  /// Runs that have tiles: the first ones.
  TMAP_HOST_DEVICE constexpr std::uint64_t used() const { return each_ == 0 ? extra_ : runs_; }

 private:
  std::uint64_t each_;
  std::uint64_t extra_;
  std::uint64_t runs_;
};

}  // namespace tmap::device
