// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tmap::interop {

/// The kind of object that a handle names. It is part of the number, so a handle of one kind is no
/// handle of another.
enum class handle_kind : std::uint32_t { map_template = 1, service = 2, batch = 3, peer_group = 4, peer_memory = 5 };

/// Guards all tables. Threads hold it for a few instructions, never while an object ends. A forked
/// child finds it open.
std::mutex& handle_mutex();

/// Holds objects by handles of 4 bits of kind, 28 of index and 32 of generation. Each object gets
/// the next generation of its place. A place whose generations are used up is never used again, so
/// a handle never names a second object. Thread-safe.
template <class Object>
class handle_table {
 public:
  static constexpr std::uint32_t last_index = (1u << 28) - 1;

  explicit handle_table(handle_kind kind, std::uint32_t first_generation = 1)
      : kind_{kind}, first_generation_{first_generation} {}

  /// Returns 0 when there are too many. Throws for want of memory only, and has then changed
  /// nothing.
  std::uint64_t insert(std::shared_ptr<Object> object) {
    const std::lock_guard lock{handle_mutex()};
    if (free_ == none) {
      if (places_.size() > last_index) return 0;
      places_.push_back({.generation = first_generation_, .next_free = none, .object = {}});
      free_ = static_cast<std::uint32_t>(places_.size() - 1);
    }
    const std::uint32_t index = free_;
    place& taken = places_[index];
    free_ = taken.next_free;
    taken.object = std::move(object);
    return handle_of(index, taken.generation);
  }

  /// Takes a place for an object that is made later. Its handle names nothing until `fill`. Returns
  /// 0 and throws as `insert`.
  std::uint64_t reserve() { return insert(nullptr); }

  /// Puts the object into the place of a handle of `reserve`, or gives the place back for null.
  void fill(std::uint64_t handle, std::shared_ptr<Object> object) {
    const std::lock_guard lock{handle_mutex()};
    place& reserved = places_[index_of(handle)];
    if (object == nullptr) {
      end(reserved, handle);
    } else {
      reserved.object = std::move(object);
    }
  }

  /// Returns null for a handle that names nothing. The object lives as long as the caller holds it.
  std::shared_ptr<Object> find(std::uint64_t handle) {
    const std::lock_guard lock{handle_mutex()};
    place* const named = place_of(handle);
    return named == nullptr ? nullptr : named->object;
  }

  /// As `find`; from then on the handle names nothing.
  std::shared_ptr<Object> remove(std::uint64_t handle) {
    const std::lock_guard lock{handle_mutex()};
    place* const named = place_of(handle);
    if (named == nullptr) return nullptr;
    end(*named, handle);
    return std::exchange(named->object, nullptr);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct place {
    std::uint32_t generation;
    std::uint32_t next_free;
    std::shared_ptr<Object> object;
  };

  std::uint64_t handle_of(std::uint32_t index, std::uint32_t generation) const {
    const std::uint32_t high = static_cast<std::uint32_t>(kind_) << 28 | index;
    return std::uint64_t{high} << 32 | generation;
  }
  static std::uint32_t index_of(std::uint64_t handle) { return static_cast<std::uint32_t>(handle >> 32) & last_index; }

  void end(place& named, std::uint64_t handle) {
    if (++named.generation != 0) named.next_free = std::exchange(free_, index_of(handle));
  }

  place* place_of(std::uint64_t handle) {
    const std::uint32_t index = index_of(handle);
    if (index >= places_.size()) return nullptr;
    place& there = places_[index];
    return there.object != nullptr && handle == handle_of(index, there.generation) ? &there : nullptr;
  }

  handle_kind kind_;
  std::uint32_t first_generation_;
  std::vector<place> places_;
  std::uint32_t free_{none};
};

}  // namespace tmap::interop
