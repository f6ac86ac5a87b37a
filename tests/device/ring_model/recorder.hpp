// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the threads of a ring do, one list for each. The calls of a thread depend on no other
// thread, so each list is recorded once, by the ring's own code over barriers that note what they
// are asked for.

#include <cstdint>
#include <vector>

namespace tmap::testing {

enum class act : std::uint8_t {
  wait,           ///< for the phase of parity `value` of `barrier`
  arrive,         ///< on `barrier`
  arrive_expect,  ///< on `barrier`, after announcing `value` bytes
  arrive_later,   ///< on `barrier`, some time after this thread's copies have landed
  wait_stores,    ///< until all but the newest `value` stores of this thread have read their stage
  load,           ///< into `stage`: `value` bytes of `tile` that land on `barrier` some time
  copy,           ///< into `stage`: a part of `tile`, by LDGSTS
  write,          ///< into `stage`: a part of `tile`, at once
  read,           ///< begins: `stage` must hold `tile`
  end_read,
  store,  ///< of `tile` from `stage`, which must hold it until the store has read it
};

struct step {
  act what;
  std::uint32_t barrier{};
  std::uint32_t value{};
  std::uint32_t stage{};
  std::uint32_t tile{};
};

using thread_steps = std::vector<step>;

/// What is recorded now. Barriers are numbered as they are initialised.
struct ring_recording {
  std::vector<std::uint32_t> barrier_counts;
  thread_steps* thread{};

  void note(const step& made) const { thread->push_back(made); }
};

inline ring_recording* now_recording = nullptr;

}  // namespace tmap::testing
