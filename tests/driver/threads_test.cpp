// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "lib/driver/entry_points.hpp"
#include "support/fake_runtime.hpp"

namespace tmap::testing {
namespace {

std::atomic<int> lookups{};

CUresult the_function(CUtensorMap*, void*) {
  return CUDA_SUCCESS;
}

cudaError_t count_lookup(const char*, void** function, unsigned int, unsigned long long,
                         cudaDriverEntryPointQueryResult* found) {
  ++lookups;
  std::this_thread::yield();
  *function = reinterpret_cast<void*>(&the_function);
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

TEST(entry_points, threads_that_look_up_at_once_find_the_same) {
  driver::runtime_calls calls = fake_runtime();
  calls.entry_point = count_lookup;
  constexpr int threads = 8;
  for (int round = 0; round < 200; ++round) {
    driver::entry_points points{calls};
    std::atomic<int> wrong{};
    std::vector<std::thread> pool;
    for (int i = 0; i < threads; ++i) {
      pool.emplace_back([&] { wrong += points.replace_address().value() != &the_function; });
    }
    for (std::thread& thread : pool) thread.join();
    ASSERT_EQ(wrong, 0);
    const int before = lookups;
    ASSERT_EQ(points.replace_address().value(), &the_function);
    ASSERT_EQ(lookups, before) << "a kept pointer is not looked up again";
  }
}

}  // namespace
}  // namespace tmap::testing
