// SPDX-License-Identifier: Apache-2.0
#include "lib/support/process.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include <unistd.h>

namespace tmap::support {
namespace {

std::atomic<bool> exiting{false};
std::atomic<int> this_process{0};

}  // namespace

/// Exit handlers run in reverse order of registration. This one runs before the destructors of
/// static objects that existed at the first call, including those of the CUDA runtime if it was
/// loaded.
bool is_exiting() {
  static const int registered = std::atexit([] { exiting.store(true, std::memory_order_release); });
  return registered != 0 || exiting.load(std::memory_order_acquire);
}

/// Keeps the id and updates it in a forked child, because a system call costs as much as a small
/// encode.
int process_id() {
  static const int watched = [] {
    this_process = getpid();
    return pthread_atfork(nullptr, nullptr, [] { this_process = getpid(); });
  }();
  return watched == 0 ? this_process.load(std::memory_order_relaxed) : getpid();
}

}  // namespace tmap::support
