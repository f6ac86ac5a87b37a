// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Shares out the tiles of a ragged batch. They are cut into runs of consecutive tiles, whose
/// lengths differ by at most one tile. Only the device knows the number of tiles; the host chooses
/// the number of runs.
///
/// - Static: as many runs as workers, worker w takes run w. It has the fewest changes of tensor,
///   and no atomics.
/// - Interleaved: more runs than workers, worker w takes runs w, w + workers, ...
/// - By a queue (work_queue.cuh): more runs than workers, each taken by a worker that is free.
///
/// work_queue.cuh compares them.

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

namespace tmap::device {

/// The tiles `first` to `last - 1`.
struct tile_range {
  std::uint64_t first;
  std::uint64_t last;
};

/// Cuts `tiles` tiles into `runs` runs. The first ones may be a tile longer. `runs` is at least 1.
class tile_shares {
 public:
  TMAP_HOST_DEVICE constexpr tile_shares(std::uint64_t tiles, std::uint64_t runs)
      : each_(tiles / runs), extra_(tiles % runs), runs_(runs) {}

  /// Returns run `r`, which is empty from `used()` on.
  TMAP_HOST_DEVICE constexpr tile_range run(std::uint64_t r) const {
    const std::uint64_t first = each_ * r + (r < extra_ ? r : extra_);
    return {first, first + each_ + (r < extra_ ? 1 : 0)};
  }

  /// Returns the number of runs that have tiles. They are the first ones.
  TMAP_HOST_DEVICE constexpr std::uint64_t used() const { return each_ == 0 ? extra_ : runs_; }

 private:
  std::uint64_t each_;
  std::uint64_t extra_;
  std::uint64_t runs_;
};

}  // namespace tmap::device
