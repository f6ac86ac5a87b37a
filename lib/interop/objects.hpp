// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/service.h>
#include <tmap/map_service.hpp>
#include <tmap/map_template.hpp>

#include <atomic>
#include <memory>
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

/// The right to use a batch until the end of this object. `is_granted` is false if another call has
/// it. Never waits.
class batch_turn {
 public:
  explicit batch_turn(held_batch& held)
      : held_{held}, is_granted_{!held.is_busy.test_and_set(std::memory_order_acquire)} {}
  batch_turn(const batch_turn&) = delete;
  batch_turn& operator=(const batch_turn&) = delete;
  ~batch_turn() {
    if (is_granted_) held_.is_busy.clear(std::memory_order_release);
  }
  bool is_granted() const { return is_granted_; }

 private:
  held_batch& held_;
  bool is_granted_;
};

handle_table<const map_template>& templates();
handle_table<map_service>& services();
handle_table<held_batch>& batches();

inline answer stale(const char* name) {
  return {TMAP_INVALID_HANDLE, error{.argument = name, .reason = stale_reason}};
}
inline answer busy(const char* name) {
  return {TMAP_BATCH_BUSY, error{.argument = name, .reason = "is in a call of another thread"}};
}

/// Puts a new object into its table and its handle to `handle`.
template <class Object, class Handle>
answer hand_out(handle_table<Object>& table, std::shared_ptr<Object> made, Handle* handle) {
  const std::uint64_t value = table.insert(std::move(made));
  if (value == 0) return error{.code = status::out_of_memory};
  handle->value = value;
  return {};
}

}  // namespace tmap::interop
