// SPDX-License-Identifier: Apache-2.0
// Tests what is left in the folder after a write that failed or was interrupted.
#include "apps/tmap/pad/output_file.hpp"
#include "tests/apps/pad_files.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace tmap::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Returns zeros that take up no memory. Writing them takes longer than any test.
std::span<const std::byte> endless_bytes() {
  constexpr std::size_t size = std::size_t{1} << 40;
  void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(bytes, MAP_FAILED);
  return {static_cast<const std::byte*>(bytes), size};
}

bool waits_for_a_file(const temporary_folder& folder) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (std::chrono::steady_clock::now() < deadline) {
    if (!folder.names("").empty()) return true;
    std::this_thread::sleep_for(std::chrono::microseconds{200});
  }
  return false;
}

TEST(output_file, a_signal_while_writing_leaves_nothing) {
  for (const int ending : {SIGINT, SIGTERM, SIGHUP}) {
    const temporary_folder folder;
    const auto bytes = endless_bytes();
    const pid_t child = fork();
    if (child == 0) {
      signal(ending, SIG_DFL);  // it may have been ignored when the tests began
      const auto written = tool::write_file(folder / "a.npy", {bytes});
      _exit(written ? 0 : 1);
    }
    EXPECT_TRUE(waits_for_a_file(folder));
    kill(child, ending);
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
    EXPECT_TRUE(WIFSIGNALED(state));
    EXPECT_EQ(WTERMSIG(state), ending);
    EXPECT_THAT(folder.names(""), IsEmpty());
  }
}

/// Under nohup a closed terminal does not end the program, and in the background Ctrl-C does not.
TEST(output_file, an_ignored_signal_stays_ignored_while_writing) {
  for (const int ignored : {SIGINT, SIGHUP}) {
    const temporary_folder folder;
    const auto bytes = endless_bytes();
    const pid_t child = fork();
    if (child == 0) {
      signal(ignored, SIG_IGN);
      signal(SIGTERM, SIG_DFL);
      const auto written = tool::write_file(folder / "a.npy", {bytes});
      _exit(written ? 0 : 1);
    }
    EXPECT_TRUE(waits_for_a_file(folder));
    kill(child, ignored);
    std::this_thread::sleep_for(
        std::chrono::milliseconds{300});  // some pieces are written in this time, and the signal would have ended it
    kill(child, SIGTERM);
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
    EXPECT_EQ(WTERMSIG(state), SIGTERM) << "the ignored signal ended it";
    EXPECT_THAT(folder.names(""), IsEmpty());
  }
}

TEST(output_file, a_failed_rename_leaves_nothing_beside) {
  const temporary_folder folder;
  std::filesystem::create_directory(folder / "a.npy");  // nothing can be renamed over a folder
  EXPECT_FALSE(tool::write_file(folder / "a.npy", {}));
  EXPECT_THAT(folder.names(""), ElementsAre("a.npy"));
}

/// The handlers before the write can be anything. For example, a shell's background job starts with
/// SIGINT ignored.
TEST(output_file, handlers_are_as_before_afterwards) {
  const temporary_folder folder;
  for (const int ending : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(ending, nullptr, &before);
    for (const auto handler : {SIG_IGN, SIG_DFL, +[](int) {}}) {
      signal(ending, handler);
      ASSERT_TRUE(tool::write_file(folder / "a.npy", {}));
      struct sigaction now {};
      sigaction(ending, nullptr, &now);
      EXPECT_EQ(now.sa_handler, handler);
    }
    sigaction(ending, &before, nullptr);
  }
}

}  // namespace
}  // namespace tmap::testing
