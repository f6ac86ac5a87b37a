// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

namespace tmap::pool {

/// A mutex for sections that are shorter than the time to put a thread to sleep and wake it. It
/// spins for a while first.
class brief_mutex {
 public:
  brief_mutex() = default;
  brief_mutex(const brief_mutex&) = delete;
  brief_mutex& operator=(const brief_mutex&) = delete;
  ~brief_mutex() { pthread_mutex_destroy(&mutex_); }

  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
};

}  // namespace tmap::pool
