// SPDX-License-Identifier: Apache-2.0
#include "lib/support/checking.hpp"

#include <gtest/gtest.h>

#include <tmap/faults.hpp>
#include <tmap/route.hpp>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace tmap::support {
namespace {

TEST(checking, the_environments_words) {
  EXPECT_EQ(check_setting(nullptr), fault_check::off);
  EXPECT_EQ(check_setting("off"), fault_check::off);
  EXPECT_EQ(check_setting("sync"), fault_check::sync);
  for (const char* const word : {"", "on", "1", "Sync", "sync "}) {
    const result<fault_check> setting = check_setting(word);
    ASSERT_FALSE(setting.has_value()) << word;
    EXPECT_EQ(setting.error().code, status::invalid_argument);
    EXPECT_EQ(to_string(setting.error()),
              "`TMAP_CHECK` is neither `off` nor `sync`; set this environment variable to one of them");
  }
}

/// Returns 1 for a checked call, 0 for another, 2 if the option or the environment is refused.
int checked_or_refused(fault_check asked) {
  arguments given;
  check_fault_check(given, asked, "check");
  if (!given) return 2;
  return is_checked(asked) ? 1 : 0;
}

/// Returns the result of `checked_or_refused` in a process whose TMAP_CHECK is `setting`. A process
/// reads the setting only once.
int answer_with(const char* setting, fault_check asked) {
  const pid_t child = fork();
  if (child == 0) {
    setting == nullptr ? unsetenv("TMAP_CHECK") : setenv("TMAP_CHECK", setting, 1);
    const int checked = checked_or_refused(asked);
    setenv("TMAP_CHECK", "sync", 1);
    _exit(checked_or_refused(asked) == checked ? checked : 9);
  }
  int outcome = 0;
  if (child < 0 || waitpid(child, &outcome, 0) != child || !WIFEXITED(outcome)) return -1;
  return WEXITSTATUS(outcome);
}

TEST(checking, the_option_wins_over_the_environment) {
  EXPECT_EQ(answer_with(nullptr, fault_check::environment), 0);
  EXPECT_EQ(answer_with("off", fault_check::environment), 0);
  EXPECT_EQ(answer_with("sync", fault_check::environment), 1);
  EXPECT_EQ(answer_with("sync", fault_check::off), 0);
  EXPECT_EQ(answer_with("off", fault_check::sync), 1);
  EXPECT_EQ(answer_with("often", fault_check::environment), 2);
  EXPECT_EQ(answer_with("often", fault_check::sync), 1) << "an explicit option does not read the environment";
  EXPECT_EQ(answer_with(nullptr, static_cast<fault_check>(3)), 2);
}

TEST(checking, numbers_of_calls_are_different) {
  std::vector<std::vector<std::uint64_t>> numbers(4);
  std::vector<std::thread> threads;
  for (auto& mine : numbers) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < 1000; ++i) mine.push_back(next_call_number());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (const auto& mine : numbers) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all.size(), 4000u);
  EXPECT_EQ(all.count(0), 0u);
}

TEST(checking, a_bad_policy_is_named) {
  ASSERT_EQ(setenv("TMAP_POLICY", "maybe", 1), 0);
  const result<route_policy> policy = policy_from_environment();
  unsetenv("TMAP_POLICY");
  ASSERT_FALSE(policy.has_value());
  EXPECT_EQ(to_string(policy.error()),
            "`TMAP_POLICY` is none of `enable`, `disable` and `force`; set this environment variable to one of them");
}

}  // namespace
}  // namespace tmap::support
