// SPDX-License-Identifier: Apache-2.0
// Tests every public call, except those of services. Each CUDA call inside it fails in turn, in a
// process of its own, so that it is the first call of the process.
#include "interop/out_of_memory.hpp"
#include "interop/wrapped_cuda.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include <sys/wait.h>
#include <unistd.h>

namespace tmap::testing {
namespace {

bool may_do_without_maps = false;

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Expects that the last failure may go unseen. A context's id is queried again later, and a
/// mode that stays relaxed does no harm. If no map template can be made, a ragged operation takes
/// another route.
bool may_go_unseen() {
  const std::string& name = failed_cuda_call();
  const bool is_of_a_map = is_one_of(name, {"cudaGetDevice", "cudaGetDeviceCount", "cudaDriverGetVersion",
                                            "cudaDeviceGetAttribute", "cuTensorMapEncodeTiled"});
  const bool is_unseen = is_one_of(name, {"cuCtxGetId", "cudaThreadExchangeStreamCaptureMode"});
  EXPECT_TRUE(is_unseen || (may_do_without_maps && is_of_a_map)) << name << " failed";
  return true;
}

bool names_a_failing_call(status code) {
  return code == status::out_of_memory || code == status::cuda_failure || code == status::no_driver;
}

enum outcome : int { never_reached, reached, failed };

std::uint64_t calls_that_failed{};

/// Ends a child long before the test's own time limit.
constexpr unsigned int seconds_of_a_child = 60;

bool run_in_a_child(const std::function<bool()>& attempt) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds_of_a_child);
    const int before = failures_so_far();
    const bool was_reached = attempt();
    std::fflush(nullptr);
    _exit(failures_so_far() != before ? failed : was_reached ? reached : never_reached);
  }
  int state = 0;
  EXPECT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state)) << "it crashed or hung: signal " << WTERMSIG(state);
  EXPECT_NE(WEXITSTATUS(state), failed) << "see above";
  if (WIFEXITED(state) && WEXITSTATUS(state) == reached) ++calls_that_failed;
  return WIFEXITED(state) && WEXITSTATUS(state) == reached;
}

/// Returns whether a call enqueues work. Such a call queries the device, finds its kernels and
/// launches them.
bool is_enqueued(const public_call& call) {
  const auto begins_with = [&](const char* word) { return call.name.rfind(word, 0) == 0; };
  const auto has = [&](const char* word) { return call.name.find(word) != std::string::npos; };
  const bool is_of_c =
      begins_with("tmap_gemm_") || begins_with("tmap_ragged_") || begins_with("tmap_moe_") || begins_with("tmap_xla_");
  const bool is_of_cpp = begins_with("tmap::gemm::") || begins_with("tmap::ragged::") || begins_with("tmap::moe::");
  const bool only_asks = has("plan") || has("workspace_bytes") || has("most_rows") || has("to_string");
  const bool is_of_batches = (is_of_c || is_of_cpp) && !only_asks && call.overloads != no_enqueued_call;
  return is_of_batches || call.name == "tmap::encode_batch";
}

/// Returns a number of CUDA calls that every such call exceeds. Padding of rows only launches.
std::uint64_t few_calls(const public_call& call) {
  return call.name.ends_with("pad_rows") ? 0 : 5;
}

void check(const std::vector<public_call>& calls) {
  for (const public_call& each : calls) {
    SCOPED_TRACE(each.name);
    calls_that_failed = 0;
    // Only later GPUs have im2col-wide maps.
    use_gpu(each.name == "tmap::encode" ? wrapped_gpu::b200 : wrapped_gpu::h200);
    each.check();
    if (is_enqueued(each)) {
      EXPECT_GT(calls_that_failed, few_calls(each)) << "it was refused for something else";
    }
  }
}

/// Sets a variable of the environment, which each child reads again.
class setting {
 public:
  setting(const char* name, const char* value) : name_{name} { EXPECT_EQ(setenv(name, value, 1), 0); }
  ~setting() { EXPECT_EQ(unsetenv(name_), 0); }
  setting(const setting&) = delete;
  setting& operator=(const setting&) = delete;

 private:
  const char* const name_;
};

TEST(failing_cuda, plain_calls) {
  check(plain_calls());
}

TEST(failing_cuda, plain_calls_of_c) {
  check(plain_calls_of_c());
}

TEST(failing_cuda, ragged_calls) {
  may_do_without_maps = true;
  check(ragged_calls());
  may_do_without_maps = false;
}

/// Checks calls that wait for their kernels and read what they counted. Ragged operations make no
/// maps here, so that no failure may go unseen.
TEST(failing_cuda, checked_calls) {
  const setting checked{"TMAP_CHECK", "sync"};
  const setting without_maps{"TMAP_POLICY", "disable"};
  check(plain_calls());
  check(plain_calls_of_c());
  check(ragged_calls());
}

}  // namespace

const needed_thing what_fails{&fail_cuda_call, &cuda_calls_made,     &names_a_failing_call,
                              &may_go_unseen,  [] { return false; }, &run_in_a_child};

}  // namespace tmap::testing
