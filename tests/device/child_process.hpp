// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace tmap::testing {

/// Runs this program again with one argument, waits, and returns its exit code. Returns -1 if the
/// child was killed or could not start. Use it for cases that end a CUDA context. Call it before
/// this process has made a context, because a forked context is unusable. The child therefore
/// starts afresh.
inline int run_self(const std::string& argument) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "child", argument.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int outcome = 0;
  if (child < 0 || waitpid(child, &outcome, 0) != child || !WIFEXITED(outcome)) return -1;
  return WEXITSTATUS(outcome);
}

}  // namespace tmap::testing
