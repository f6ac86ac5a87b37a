// SPDX-License-Identifier: Apache-2.0
#pragma once

// Deals items among threads, or their words among the lanes of a warp.

#include <tmap/detail/standard.hpp>

namespace tmap::kernels::peer {

/// Names one of several threads, or warps, that share items.
struct worker {
  std::uint64_t number;
  std::uint64_t count;
};

/// Runs `use` on this worker's share of so many items.
template <class Use>
TMAP_HOST_DEVICE void share(const worker& mine, std::uint64_t items, const Use& use) {
  TMAP_KEEP_ROLLED
  for (std::uint64_t i = mine.number; i < items; i += mine.count) use(i);
}

/// Names a lane of a warp among those that share items of several words: warps share the items, and
/// lanes their words.
struct word_worker {
  worker warp;
  worker lane;

  TMAP_HOST_DEVICE constexpr worker thread() const {
    return {warp.number * lane.count + lane.number, warp.count * lane.count};
  }
};

/// Names the items that a warp works on, alone or with others.
struct dealt_items {
  std::uint32_t first;
  std::uint32_t step;  ///< from one to the next
  worker own;          ///< this thread, among those that work on the same ones
};

/// Deals items to warps that have work for many threads each. There is at least one.
TMAP_HOST_DEVICE constexpr dealt_items deal_to_warps(const word_worker& mine, std::uint32_t items) {
  const auto warp = static_cast<std::uint32_t>(mine.warp.number), warps = static_cast<std::uint32_t>(mine.warp.count);
  const std::uint32_t groups = warps < items ? warps : items, group = warp % groups;
  const word_worker own{{warp / groups, (warps - group + groups - 1) / groups}, mine.lane};
  return {group, groups, own.thread()};
}

/// Moves this worker's share of so many items. `load(i)` of the field returns what an item is made
/// of, and `use(i, value)` takes it. Several items are loaded before the first one is used, so that
/// they wait together. Lanes that took different branches for each item would wait for each other:
/// a field has none.
template <std::uint32_t at_once, class Field>
TMAP_HOST_DEVICE void share_field(const worker& mine, std::uint32_t items, const Field& field) {
  const auto step = static_cast<std::uint32_t>(mine.count);
  TMAP_KEEP_ROLLED
  for (auto first = static_cast<std::uint32_t>(mine.number); first < items; first += at_once * step) {
    decltype(field.load(0)) values[at_once]{};
    for (std::uint32_t j = 0; j < at_once; ++j) {
      if (first + j * step < items) values[j] = field.load(first + j * step);
    }
    for (std::uint32_t j = 0; j < at_once; ++j) {
      if (first + j * step < items) field.use(first + j * step, values[j]);
    }
  }
}

/// Moves words of this lane's share of so many items. `field_of(word)` returns what is the same for
/// all items.
template <class FieldOf>
TMAP_HOST_DEVICE void share_words(const word_worker& mine, std::uint32_t items, std::uint32_t words,
                                  const FieldOf& field_of) {
  constexpr std::uint32_t at_once = 5;
  share(mine.lane, words, [&](std::uint64_t word) {
    share_field<at_once>(mine.warp, items, field_of(static_cast<std::uint32_t>(word)));
  });
}

}  // namespace tmap::kernels::peer
