// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/objects.hpp"

#include <pthread.h>

namespace tmap::interop {
namespace {

/// Another thread may hold the mutex in the moment of a fork, and would hold it in the child for
/// ever.
std::mutex* make_handle_mutex() {
  auto* const mutex = new std::mutex;
  pthread_atfork([] { handle_mutex().lock(); }, [] { handle_mutex().unlock(); }, [] { handle_mutex().unlock(); });
  return mutex;
}

template <class Object>
handle_table<Object>& table_of(handle_kind kind) {
  static auto& table = *new handle_table<Object>{kind};
  return table;
}

}  // namespace

std::mutex& handle_mutex() {
  static std::mutex& mutex = *make_handle_mutex();
  return mutex;
}

handle_table<const map_template>& templates() {
  return table_of<const map_template>(handle_kind::map_template);
}

handle_table<map_service>& services() {
  return table_of<map_service>(handle_kind::service);
}

handle_table<held_batch>& batches() {
  return table_of<held_batch>(handle_kind::batch);
}

handle_table<held_group>& peer_groups() {
  return table_of<held_group>(handle_kind::peer_group);
}

handle_table<const peer_memory>& peer_memories() {
  return table_of<const peer_memory>(handle_kind::peer_memory);
}

}  // namespace tmap::interop
