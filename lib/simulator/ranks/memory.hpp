// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/simulator/ranks/view.hpp"

namespace tmap::ranks {

/// Names a word: the window of rank r is space r; the shared memory of a block is a space after
/// those of the windows.
struct place {
  std::uint32_t space;
  std::uint32_t word;
};

struct write {
  std::uint32_t value{0};
  bool is_read{false};  ///< some read returned it, so its value can change no more
  bool is_release{false};
  view released{};       ///< what an acquire of it learns
  std::uint32_t tag{0};  ///< of the packet that the word belongs to; 0: of none
};

/// Holds the writes of every word in coherence order (PTX ISA 8.9.6). A
/// location keeps its number over all executions, so that hashes of states compare.
class memory {
 public:
  location at(place where);
  place where(location at) const { return places_[at]; }
  std::size_t locations() const { return places_.size(); }

  std::vector<write>& writes(location at) { return writes_[at]; }
  const std::vector<write>& writes(location at) const { return writes_[at]; }
  position count(location at) const { return static_cast<position>(writes_[at].size()); }

  /// Puts a write into coherence order before the write that has place `before` now.
  void insert(location at, position before, write what);

  /// Forgets all writes but the initial ones.
  void clear();
  std::uint64_t hash() const;

 private:
  std::vector<std::vector<std::uint32_t>>
      numbers_;  ///< one more than the location, by space and word; 0 if it has none
  std::vector<place> places_;
  std::vector<std::vector<write>> writes_;
  std::vector<location> released_;  ///< locations that hold releases
};

}  // namespace tmap::ranks
