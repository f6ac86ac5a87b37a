// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tmap::apps {

/// Ends the process with exit code 2 after so many seconds, so that no kernel hangs for ever. The
/// message begins with `program`.
inline void end_after(int seconds, const char* program) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::seconds{seconds});
    std::fprintf(stderr, "%s: not done after %d seconds, given up\n", program, seconds);
    std::_Exit(2);
  }).detach();
}

}  // namespace tmap::apps
