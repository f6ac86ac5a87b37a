// SPDX-License-Identifier: Apache-2.0
// Tests the parts of the real table that need no GPU: the end of a process, a fork, and a machine
// without a driver.
#include <tmap/map_service.hpp>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include "kernels/has_kernels.hpp"
#include "lib/service/service_calls.hpp"

namespace tmap::testing {
namespace {

bool is_watched_child = false;

enum exit_code : int { saw_the_end = 7, saw_nothing = 8 };

/// Is registered before tmap registers anything, as the destructor of a static object would be.
const int registered = std::atexit([] {
  if (is_watched_child) _exit(service::real_service_calls().is_exiting() ? saw_the_end : saw_nothing);
});

template <class Child>
int exit_code_of_child(const Child& run) {
  const pid_t child = fork();
  if (child == 0) {
    run();
    _exit(127);
  }
  int outcome = 0;
  EXPECT_EQ(waitpid(child, &outcome, 0), child);
  return WIFEXITED(outcome) ? WEXITSTATUS(outcome) : -1;
}

TEST(real_service_calls, older_destructors_see_that_the_process_exits) {
  ASSERT_EQ(registered, 0);
  const int code = exit_code_of_child([] {
    is_watched_child = true;
    if (service::real_service_calls().is_exiting()) _exit(saw_nothing);
    std::exit(0);
  });
  EXPECT_EQ(code, saw_the_end);
}

TEST(real_service_calls, a_forked_child_has_another_id) {
  const int parent = service::real_service_calls().process_id();
  EXPECT_EQ(parent, getpid());
  const int code = exit_code_of_child(
      [&] { _exit(service::real_service_calls().process_id() == getpid() && getpid() != parent ? 7 : 8); });
  EXPECT_EQ(code, 7);
}

TEST(real_service_calls, create_says_why_it_cannot) {
  int devices = 0;
  const bool has_gpu = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  const result<map_service> made = map_service::create({.capacity = 16});
  if (!kernels::has_kernels()) {
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, status::no_kernel_image);
    return;
  }
  EXPECT_EQ(made.has_value(), has_gpu);
  EXPECT_TRUE(made || made.error().code == status::no_driver || made.error().code == status::no_device);
}

}  // namespace
}  // namespace tmap::testing
