// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

// Runs the command-line tool in a process of its own, as from a shell. TMAP_TOOL is the path of the
// built program.

namespace tmap::testing {

/// Holds the output of one run of a program. `exit_code` is 128 + the signal when a signal ended
/// it, and -1 when it never ran.
struct tool_result {
  int exit_code{-1};
  std::string out;
  std::string err;
};

namespace detail {

inline std::string read_all(int file) {
  std::string text;
  char buffer[4096];
  lseek(file, 0, SEEK_SET);
  for (ssize_t n; (n = read(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

/// Makes a file without a name. A full pipe cannot block the program, and no file is left.
inline int temporary_file(const std::string& content = {}) {
  std::string path = (std::filesystem::temp_directory_path() / "tmap-test-XXXXXX").string();
  const int file = mkstemp(path.data());
  unlink(path.c_str());
  if (write(file, content.data(), content.size()) != static_cast<ssize_t>(content.size())) std::abort();
  lseek(file, 0, SEEK_SET);
  return file;
}

[[noreturn]] inline void become(const std::vector<std::string>& command, int in, int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace detail

/// Runs `command` (path and arguments) with `input` on its standard input and waits for its end.
inline tool_result run_program(const std::vector<std::string>& command, const std::string& input = {}) {
  const int in = detail::temporary_file(input);
  const int out = detail::temporary_file();
  const int err = detail::temporary_file();
  const pid_t child = fork();
  if (child == 0) detail::become(command, in, out, err);
  tool_result result;
  int state = 0;
  if (child > 0 && waitpid(child, &state, 0) == child) {
    result.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  }
  result.out = detail::read_all(out);
  result.err = detail::read_all(err);
  for (const int file : {in, out, err}) close(file);
  return result;
}

#ifdef TMAP_TOOL
inline tool_result run_tmap(std::vector<std::string> arguments, const std::string& input = {}) {
  arguments.insert(arguments.begin(), TMAP_TOOL);
  return run_program(arguments, input);
}
#endif

}  // namespace tmap::testing
