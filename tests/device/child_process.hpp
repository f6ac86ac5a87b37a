// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace tmap::testing {

/// Runs this program again with one argument, waits, and answers with its exit code; -1 when it was
/// killed or could not start. For what ends a CUDA context. Call it before this process has made a
/// context of its own: a forked one would be of no use, which is why the child starts afresh.
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
