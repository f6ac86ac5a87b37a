// SPDX-License-Identifier: Apache-2.0
#include "apps/support/progress.hpp"
#include "apps/support/terminal.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

namespace tmap::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs `work` while the file `there` is standard error, and returns what it wrote, read from
/// `here`. Closes both files. A terminal delivers text in pieces, so reading goes on until no
/// writer is left.
std::string read_error_of(const std::function<void()>& work, int there, int here) {
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(there, STDERR_FILENO);
  close(there);
  work();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t count; (count = read(here, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(here);
  return text;
}

std::string on_terminal(const std::function<void()>& work) {
  const int here = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_EQ(grantpt(here), 0);
  EXPECT_EQ(unlockpt(here), 0);
  return read_error_of(work, open(ptsname(here), O_RDWR | O_NOCTTY), here);
}

std::string in_pipe(const std::function<void()>& work) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  return read_error_of(work, ends[1], ends[0]);
}

/// Lasts longer than the interval between two drawings. The first one may show no progress yet.
void half_of_long_work() {
  apps::progress bar{"reading", 4, std::chrono::milliseconds{0}};
  bar.advance(2);
  std::this_thread::sleep_for(std::chrono::milliseconds{150});
}

TEST(progress, a_terminal_sees_a_bar_that_goes_away) {
  const std::string text = on_terminal(half_of_long_work);
  EXPECT_THAT(text, HasSubstr("\rreading    [####################....................]  50%"));
  EXPECT_THAT(text, EndsWith("\r\x1b[K"));
}

TEST(progress, a_pipe_sees_nothing) {
  EXPECT_EQ(in_pipe(half_of_long_work), "");
}

TEST(progress, one_long_step_shows_its_seconds) {
  const auto work = [] {
    const apps::progress bar{"copying", 0, std::chrono::milliseconds{0}};
    std::this_thread::sleep_for(std::chrono::milliseconds{150});
  };
  const std::string text = on_terminal(work);
  EXPECT_THAT(text, HasSubstr("\rcopying    0.0 s"));
  EXPECT_THAT(text, HasSubstr("\rcopying    0.1 s"));
  EXPECT_THAT(text, EndsWith("\r\x1b[K"));
}

TEST(progress, half_a_second_is_short) {
  const auto work = [] {
    const apps::progress bar{"copying"};
    std::this_thread::sleep_for(std::chrono::milliseconds{700});
  };
  EXPECT_THAT(on_terminal(work), HasSubstr("\rcopying    0.5 s"));
}

TEST(progress, short_work_has_no_bar) {
  const auto work = [] {
    apps::progress bar{"reading", 4};
    bar.advance(4);
  };
  EXPECT_EQ(on_terminal(work), "");
}

void print_red() {
  std::fputs(apps::styled_error(apps::style::bad, "red").c_str(), stderr);
}

TEST(colours, are_for_terminals_without_no_color) {
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_EQ(on_terminal(print_red), "\x1b[1;31mred\x1b[0m");
  EXPECT_EQ(in_pipe(print_red), "red");
  setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(on_terminal(print_red), "red");
  setenv("NO_COLOR", "", 1);
  EXPECT_EQ(on_terminal(print_red), "\x1b[1;31mred\x1b[0m") << "an empty value counts as unset";
  setenv("TERM", "dumb", 1);
  EXPECT_EQ(on_terminal(print_red), "red");
}

TEST(colours, are_what_was_chosen) {
  apps::choose_colours(apps::colour_choice::always);
  EXPECT_EQ(in_pipe(print_red), "\x1b[1;31mred\x1b[0m");
  apps::choose_colours(apps::colour_choice::never);
  setenv("TERM", "xterm", 1);
  EXPECT_EQ(on_terminal(print_red), "red");
  apps::choose_colours(apps::colour_choice::automatic);
}

}  // namespace
}  // namespace tmap::testing
