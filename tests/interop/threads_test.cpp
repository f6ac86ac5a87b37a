// SPDX-License-Identifier: Apache-2.0
// Eight threads use the same handles, which are destroyed meanwhile.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "interop/c_service_fixture.hpp"
#include "interop/sized.hpp"

#ifdef __SANITIZE_THREAD__
// A forked child never has its parent's threads. The thread sanitizer takes them for lost and ends
// the child with a code.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "report_thread_leaks=0";
}
#endif

namespace tmap::testing {
namespace {

class c_threads : public c_service_fixture {
 protected:
  template <class Work>
  static void on_eight(const Work& work) {
    std::vector<std::thread> threads;
    for (std::uint32_t n = 0; n < 8; ++n) threads.emplace_back([&, n] { work(n); });
    for (std::thread& thread : threads) thread.join();
  }
};

/// Calls on an object that is destroyed meanwhile must work or report that it is gone. Nothing may
/// be left.
TEST_F(c_threads, a_service_and_a_template_end_under_their_users) {
  const tensor_list tensors{4};
  const tmap_patch_source source = source_of(tensors);
  std::atomic<std::uint64_t> wrong{};
  for (int round = 0; round < 20; ++round) {
    const tmap_service service = make_c(1024);
    const tmap_template of = make_template(base);
    std::atomic<std::uint64_t> ends{};
    on_eight([&](std::uint32_t n) {
      const tmap_call call = call_on(machine.streams.open_stream());
      for (std::uint32_t turn = 0; turn < 20; ++turn) {
        tmap_batch batch{};
        const tmap_status made = tmap_service_encode(service, of, &source, 4, &batch, &call);
        if (made == TMAP_OK) wrong += tmap_batch_release(batch) == TMAP_OK ? 0 : 1;
        if (made != TMAP_OK) wrong += made == TMAP_INVALID_HANDLE ? 0 : 1;
        if (turn == 10 + n) ends += tmap_service_destroy(service) == TMAP_OK ? 1 : 0;
        if (turn == 10 + n) ends += tmap_template_destroy(of) == TMAP_OK ? 1 : 0;
      }
    });
    ASSERT_EQ(ends, 2u);
    machine.streams.run_all();
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(machine.is_clean());
}

/// All threads use one batch. Each call must work, or report that it is not the caller's turn or
/// that the batch is gone.
TEST_F(c_threads, a_batch_is_released_once) {
  const tmap_service service = make_c(1024);
  std::atomic<std::uint64_t> wrong{};
  for (int round = 0; round < 50; ++round) {
    tmap_batch batch{};
    ASSERT_EQ(tmap_service_reserve(service, 4, &batch, nullptr), TMAP_OK);
    std::atomic<std::uint64_t> releases{};
    on_eight([&](std::uint32_t) {
      tmap_batch_info info{};
      info.struct_size = sizeof info;
      for (int turn = 0; turn < 20; ++turn) {
        const tmap_status seen = tmap_batch_query(batch, &info);
        const tmap_status used = tmap_batch_use_on(batch, nullptr);
        const tmap_status released = turn < 10 ? tmap_status{TMAP_BATCH_BUSY} : tmap_batch_release(batch);
        for (const tmap_status code : {seen, used, released}) {
          wrong += code == TMAP_OK || code == TMAP_BATCH_BUSY || code == TMAP_INVALID_HANDLE ? 0 : 1;
        }
        releases += released == TMAP_OK ? 1 : 0;
      }
    });
    if (releases == 0) releases += tmap_batch_release(batch) == TMAP_OK ? 1 : 0;
    ASSERT_EQ(releases, 1u);
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
  machine.streams.run_all();
  EXPECT_TRUE(machine.is_clean());
}

/// A forked child must find the tables unlocked, even if another thread holds them during the fork.
/// The child is killed if it waits for them.
TEST_F(c_threads, a_child_forked_in_the_midst_of_a_call_goes_on) {
  std::atomic<bool> is_held{};
  std::thread holder{[&] {
    const std::lock_guard lock{interop::handle_mutex()};
    is_held = true;
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }};
  while (!is_held) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(tmap_template_destroy({0}) == TMAP_INVALID_HANDLE ? 0 : 1);
  }
  int outcome = -1;
  ASSERT_EQ(waitpid(child, &outcome, 0), child);
  holder.join();
  EXPECT_EQ(outcome, 0);
}

TEST_F(c_threads, hostile_calls_of_all_kinds) {
  const tmap_service service = make_c(1024);
  const tensor_list tensors{4};
  const tmap_patch_source source = source_of(tensors);
  const std::string before = statistics_of(service);
  std::atomic<std::uint64_t> accepted{};
  on_eight([&](std::uint32_t n) {
    const auto count = [&](tmap_status code) { accepted += code == TMAP_OK ? 1 : 0; };
    for (std::uint64_t turn = 0; turn < 500; ++turn) {
      const std::uint64_t wild = turn * 0x9e3779b97f4a7c15u + n;
      tmap_patch_source bad = source;
      bad.struct_size = static_cast<std::uint32_t>(turn % sizeof bad);
      tmap_batch batch{};
      count(tmap_service_encode(service, c_base, &bad, 4, &batch, nullptr));
      count(tmap_service_encode(service, {wild}, &source, 4, &batch, nullptr));
      count(tmap_service_encode({wild}, c_base, &source, 4, &batch, nullptr));
      count(tmap_service_encode(service, c_base, nullptr, 4, &batch, nullptr));
      count(tmap_service_encode(service, c_base, &source, 0, &batch, nullptr));
      count(tmap_service_reserve(service, 4, nullptr, nullptr));
      count(tmap_batch_release({wild}));
      count(tmap_service_destroy({wild}));
      count(tmap_template_destroy({wild}));
      count(tmap_encode(nullptr, nullptr));
    }
  });
  EXPECT_EQ(accepted, 0u);
  EXPECT_EQ(statistics_of(service), before);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
  EXPECT_TRUE(machine.is_clean());
}

}  // namespace
}  // namespace tmap::testing
