// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ranks/memory.hpp"

#include <algorithm>
#include <utility>

namespace tmap::ranks {

location memory::at(place where) {
  if (where.space >= numbers_.size()) numbers_.resize(where.space + std::size_t{1});
  auto& numbers = numbers_[where.space];
  if (where.word >= numbers.size()) numbers.resize(where.word + std::size_t{1});
  if (numbers[where.word] == 0) {
    places_.push_back(where);
    writes_.emplace_back(1);
    numbers[where.word] = static_cast<std::uint32_t>(places_.size());
  }
  return numbers[where.word] - 1;
}

void memory::insert(location at, position before, write what) {
  const bool is_new = what.is_release && std::find(released_.begin(), released_.end(), at) == released_.end();
  if (is_new) released_.push_back(at);
  writes_[at].insert(writes_[at].begin() + before, std::move(what));
  for (const location signal : released_) {
    for (write& other : writes_[signal]) other.released.make_room(at, before);
  }
}

void memory::clear() {
  for (auto& writes : writes_) {
    writes.resize(1);
    writes.front().is_read = false;
  }
  released_.clear();
}

std::uint64_t memory::hash() const {
  std::uint64_t hash = 2;
  for (location at = 0; at < writes_.size(); ++at) {
    if (writes_[at].size() == 1) continue;
    hash = mix(hash, at);
    for (const write& each : writes_[at]) {
      hash = mix(hash, std::uint64_t{each.value} << 1 | (each.is_read ? 1 : 0));
      if (each.tag != 0) hash = mix(hash, each.tag);
      if (each.is_release) hash = mix(hash, each.released.hash());
    }
  }
  return hash;
}

}  // namespace tmap::ranks
