// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tmap::ranks {

/// Numbers a word of a window or of shared memory (memory.hpp).
using location = std::uint32_t;
/// Numbers the writes of one location in coherence order. Write 0 is the initial value.
using position = std::uint16_t;

/// Mixes a number into a hash.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t number) {
  hash = (hash ^ number) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

/// Holds, for each location, the oldest write that a read may still return. PTX ISA 8.10.6: a read
/// does not return a write that is older than one which precedes the read in causality order.
class view {
 public:
  position operator[](location at) const { return at < oldest_.size() ? oldest_[at] : position{0}; }

  void raise(location at, position to) {
    if (to == 0) return;
    if (at >= oldest_.size()) oldest_.resize(at + std::size_t{1});
    oldest_[at] = std::max(oldest_[at], to);
  }

  void join(const view& other) {
    if (other.oldest_.size() > oldest_.size()) oldest_.resize(other.oldest_.size());
    for (std::size_t at = 0; at < other.oldest_.size(); ++at) oldest_[at] = std::max(oldest_[at], other.oldest_[at]);
  }

  /// Follows the insertion of a write into coherence order: it gets place `at`, and later ones
  /// move.
  void make_room(location where, position at) {
    if (where < oldest_.size() && oldest_[where] >= at) ++oldest_[where];
  }

  void clear() { oldest_.clear(); }

  /// Depends on the entries alone, not on how many zeros are stored.
  std::uint64_t hash() const {
    std::uint64_t hash = 1;
    for (std::size_t at = 0; at < oldest_.size(); ++at) {
      if (oldest_[at] != 0) hash = mix(hash, at << 16 | oldest_[at]);
    }
    return hash;
  }

 private:
  std::vector<position> oldest_;
};

}  // namespace tmap::ranks
