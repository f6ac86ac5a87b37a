// SPDX-License-Identifier: Apache-2.0
#include "lib/pool/segment_map.hpp"

#include <cstddef>
#include <iterator>
#include <utility>

namespace tmap::pool {
namespace {

/// One for `add` and two for `assign`, which cuts at both ends of its window.
constexpr std::size_t most_new_segments = 3;

}  // namespace

void segment_map::add(const slot_window& window) {
  index_free(insert(segments_.end(), window, nullptr));
}

void segment_map::reserve() {
  while (spare_.size() < most_new_segments) {
    sizes made{{0, 0}};
    spare_.emplace(0, segment{0, nullptr, made.extract(made.begin())});
  }
}

std::optional<slot_window> segment_map::find_free(std::uint64_t count, const slot_window& bounds) const {
  for (auto fitting = free_by_size_.lower_bound({count, 0}); fitting != free_by_size_.end(); ++fitting) {
    if (bounds.contains(fitting->second)) return slot_window{fitting->second, count};
  }
  return std::nullopt;
}

void segment_map::free(const slot_window& window, const holding* owner) {
  for (iterator part = segments_.lower_bound(window.first); part != segments_.end() && part->first < window.end();
       ++part) {
    if (part->second.owner != owner) continue;
    part->second.owner = nullptr;
    if (part != segments_.begin()) part = join(std::prev(part), part);
    if (const iterator next = std::next(part); next != segments_.end()) join(part, next);
    index_free(part);
  }
}

/// Cuts a segment, so that one begins at `address`, unless that is the end of a slab. Returns that
/// segment, or the next one.
segment_map::iterator segment_map::split(std::uint64_t address) {
  const iterator next = segments_.lower_bound(address);
  if (next == segments_.begin()) return next;
  const iterator left = std::prev(next);
  const std::uint64_t end = left->first + left->second.count;
  if (end <= address) return next;
  const bool is_free = left->second.owner == nullptr;
  if (is_free) forget_free(left);
  left->second.count = address - left->first;
  const iterator right = insert(next, {address, end - address}, left->second.owner);
  if (is_free) index_free(left);
  if (is_free) index_free(right);
  return right;
}

segment_map::iterator segment_map::insert(position next, const slot_window& window, holding* owner) {
  auto made = spare_.extract(spare_.begin());
  made.key() = window.first;
  made.mapped().count = window.count;
  made.mapped().owner = owner;
  return segments_.insert(next, std::move(made));
}

/// Joins two free neighbours, one of which is not in the index. Returns the segment that contains
/// `right` then.
segment_map::iterator segment_map::join(iterator left, iterator right) {
  const bool adjacent = left->first + left->second.count == right->first;
  if (!adjacent || left->second.owner != nullptr || right->second.owner != nullptr) return right;
  forget_free(left);
  forget_free(right);
  left->second.count += right->second.count;
  segments_.erase(right);
  return left;
}

void segment_map::index_free(iterator part) {
  part->second.size.value() = {part->second.count, part->first};
  free_by_size_.insert(std::move(part->second.size));
}

void segment_map::forget_free(iterator part) {
  if (part->second.size.empty()) part->second.size = free_by_size_.extract({part->second.count, part->first});
}

}  // namespace tmap::pool
