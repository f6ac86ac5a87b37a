// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/rule.hpp>

namespace tmap {

// What the batch encoder answers about the patches it read, and how it is asked to. Plain data in device memory,
// written by the encoding kernel: no call of the host waits for it.

/// What became of one map. A good one is as its patch asks. A bad one broke `rules()`, an empty one has a dim of 0;
/// both are the safe empty map instead (`encode_batch_async`). Empty wins over bad, and is no error.
struct map_status {
  static constexpr std::uint64_t empty_bit = std::uint64_t{1} << 63;

  std::uint64_t bits{};

  TMAP_HOST_DEVICE constexpr bool is_good() const { return bits == 0; }
  TMAP_HOST_DEVICE constexpr bool is_empty() const { return bits == empty_bit; }
  TMAP_HOST_DEVICE constexpr bool is_bad() const { return !is_good() && !is_empty(); }
  TMAP_HOST_DEVICE constexpr rule_set rules() const { return rule_set{bits & ~empty_bit}; }
  friend TMAP_HOST_DEVICE constexpr bool operator==(map_status a, map_status b) { return a.bits == b.bits; }
  friend TMAP_HOST_DEVICE constexpr bool operator!=(map_status a, map_status b) { return a.bits != b.bits; }
};

/// `batch_header::first_bad` of a batch without a bad map.
inline constexpr std::uint32_t no_bad_map = ~std::uint32_t{0};

/// What became of a whole batch.
struct alignas(16) batch_header {
  std::uint32_t bad_count{};
  std::uint32_t first_bad{no_bad_map};  ///< the lowest index of a bad map
  std::uint32_t empty_count{};
  std::uint32_t reserved{};
};

/// Sums over many batches, which tmap only ever adds to. Best in device memory, to be copied when they are wanted.
/// Pinned host memory works too, but each warp that finds a bad or empty map then pays a trip over the bus.
struct alignas(16) batch_totals {
  std::uint64_t bad_maps{};
  std::uint64_t empty_maps{};
};

/// A range of device addresses that a map may reach, from `begin` up to but not including `end`: an allocation, say.
struct alignas(16) address_window {
  std::uint64_t begin{};
  std::uint64_t end{};
};

/// How a kernel that encodes writes its maps and publishes them. The bytes are equal, and consumers acquire either.
enum class publish : std::uint32_t {
  stores,      ///< coalesced stores of 16 bytes, then one release fence for all maps of a warp: the faster way
  copy_fence,  ///< `tensormap.cp_fenceproxy`, which copies one map and releases it
};

/// What a batch encode does beside making maps. All pointers are device memory of the caller, unchanged (`windows`) or
/// unread (`statuses`, `header`) until the encode has run in stream order; each may be null.
struct encode_options {
  map_status* statuses{};           ///< one for each map
  batch_header* header{};           ///< needs no initial value
  batch_totals* totals{};           ///< what this batch adds to
  const address_window* windows{};  ///< with any, a map that reaches outside each of them is bad (T38)
  std::uint32_t window_count{};     ///< every map looks through them in turn: meant for a few
  /// Leaves validation out: any patch becomes the map it asks for, wild ones too. For patches validated before. Goes
  /// with no other option but `check`, which then finds nothing.
  bool trusted{};
  fault_check check{};  ///< whether the call waits, and fails with `bad_items` where a map is bad
  publish published_by{publish::stores};
};

}  // namespace tmap
