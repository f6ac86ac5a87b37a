// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tmap::apps {

/// A kernel that hangs ends with the process, whose exit code then is 2. `program`: what a message
/// begins with.
inline void end_after(int seconds, const char* program) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::seconds{seconds});
    std::fprintf(stderr, "%s: not done after %d seconds, given up\n", program, seconds);
    std::_Exit(2);
  }).detach();
}

}  // namespace tmap::apps
