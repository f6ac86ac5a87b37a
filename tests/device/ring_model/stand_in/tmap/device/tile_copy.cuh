// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stands in for the header of this name, so that g++ compiles the stage ring. Its barriers and
// stores are recorded.

#include <cuda_runtime_api.h>

#include "device/ring_model/recorder.hpp"

namespace tmap::device {

class tile_barrier {
 public:
  void init(std::uint32_t arrivals) {
    number_ = static_cast<std::uint32_t>(testing::now_recording->barrier_counts.size());
    testing::now_recording->barrier_counts.push_back(arrivals);
  }
  void arrive() { testing::now_recording->note({testing::act::arrive, number_}); }
  void arrive_expect(std::uint32_t bytes) {
    testing::now_recording->note({testing::act::arrive_expect, number_, bytes});
  }
  void wait(std::uint32_t parity) { testing::now_recording->note({testing::act::wait, number_, parity}); }

  std::uint32_t number() const { return number_; }

 private:
  std::uint32_t number_{};
};

inline void fence_barrier_init() {}
inline void fence_shared_writes() {}
inline void commit_stores() {}
template <int Pending>
void wait_stores_read() {
  testing::now_recording->note({testing::act::wait_stores, 0, Pending});
}
inline void wait_stores_written() {
  wait_stores_read<0>();
}

}  // namespace tmap::device
