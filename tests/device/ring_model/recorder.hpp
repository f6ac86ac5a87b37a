// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records the steps of a ring's threads, one list for each thread. The calls of a thread do not
// depend on other threads, so the ring's own code records each list once. Its barriers note the
// calls that they receive.

#include <cstdint>
#include <vector>

namespace tmap::testing {

enum class act : std::uint8_t {
  wait,           ///< waits for the phase of parity `value` of `barrier`
  arrive,         ///< arrives on `barrier`
  arrive_expect,  ///< announces `value` bytes on `barrier` and arrives
  arrive_later,   ///< arrives on `barrier` some time after this thread's copies have landed
  wait_stores,    ///< waits until all but the newest `value` stores of this thread have read their stage
  load,           ///< loads `value` bytes of `tile` into `stage`, which land on `barrier` at some time
  copy,           ///< copies a part of `tile` into `stage` by LDGSTS
  write,          ///< writes a part of `tile` into `stage` at once
  read,           ///< begins to read `stage`, which must hold `tile`
  end_read,
  store,  ///< stores `tile` from `stage`, which must hold it until the store has read it
};

struct step {
  act what;
  std::uint32_t barrier{};
  std::uint32_t value{};
  std::uint32_t stage{};
  std::uint32_t tile{};
};

using thread_steps = std::vector<step>;

/// Holds the current recording. Barriers are numbered in the order in which they are initialised.
struct ring_recording {
  std::vector<std::uint32_t> barrier_counts;
  thread_steps* thread{};

  void note(const step& made) const { thread->push_back(made); }
};

inline ring_recording* now_recording = nullptr;

}  // namespace tmap::testing
