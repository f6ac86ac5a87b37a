// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/peer.h>
#include <tmap/c/service.h>
#include <tmap/map_service.hpp>
#include <tmap/map_template.hpp>
#include <tmap/peer_group.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "lib/interop/call.hpp"
#include "lib/interop/handle_table.hpp"

// The objects that C's handles name. The tables are never destroyed: a process may exit while
// threads are in calls.

namespace tmap::interop {

/// A batch, for one call at a time.
struct held_batch {
  explicit held_batch(map_batch made) : batch{std::move(made)} {}
  map_batch batch;
  std::atomic_flag is_busy;
};

/// One rank of a group of GPUs, for one call at a time.
struct held_group {
  std::optional<peer_group> group;
  std::atomic_flag is_busy;
};

/// The right to use a batch or a group until the end of this object. `is_granted` is false if
/// another call has it. Never waits.
template <class Held>
class turn {
 public:
  explicit turn(Held& held) : held_{held}, is_granted_{!held.is_busy.test_and_set(std::memory_order_acquire)} {}
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;
  ~turn() {
    if (is_granted_) held_.is_busy.clear(std::memory_order_release);
  }
  bool is_granted() const { return is_granted_; }

 private:
  Held& held_;
  bool is_granted_;
};
using batch_turn = turn<held_batch>;

handle_table<const map_template>& templates();
handle_table<map_service>& services();
handle_table<held_batch>& batches();
handle_table<held_group>& peer_groups();
handle_table<const peer_memory>& peer_memories();

inline answer stale(const char* name) {
  return {TMAP_INVALID_HANDLE, error{.argument = name, .reason = stale_reason}};
}
inline answer busy(const char* name, tmap_status code = TMAP_BATCH_BUSY) {
  return {code, error{.argument = name, .reason = "is in a call of another thread"}};
}

/// Puts a new object into its table and its handle to `handle`.
template <class Object, class Handle>
answer hand_out(handle_table<Object>& table, std::shared_ptr<Object> made, Handle* handle) {
  const std::uint64_t value = table.insert(std::move(made));
  if (value == 0) return error{.code = status::out_of_memory};
  handle->value = value;
  return {};
}

/// A place that is taken for an object. It is given back at the end of this, if `made` is still
/// null.
template <class Object>
class reserved_place {
 public:
  explicit reserved_place(handle_table<Object>& table) : table_{table}, handle_{table.reserve()} {}
  reserved_place(const reserved_place&) = delete;
  reserved_place& operator=(const reserved_place&) = delete;
  ~reserved_place() {
    if (handle_ != 0) table_.fill(handle_, std::move(made));
  }
  std::uint64_t handle() const { return handle_; }

  std::shared_ptr<Object> made;

 private:
  handle_table<Object>& table_;
  std::uint64_t handle_;
};

/// Hands out the object that `make` puts into its argument, or returns its failure. The place is
/// taken first, so if there is no room for the handle, nothing was made.
template <class Object, class Handle, class Make>
answer hand_out_made(handle_table<Object>& table, Handle* handle, const Make& make) {
  reserved_place<Object> place{table};
  if (place.handle() == 0) return error{.code = status::out_of_memory};
  const answer ended = make(place.made);
  if (ended.is_ok()) handle->value = place.handle();
  return ended;
}

}  // namespace tmap::interop
