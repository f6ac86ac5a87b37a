// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <ostream>

#include "pool/pool_fixture.hpp"
#include "support/failing_new.hpp"

// Lets the first, second, third ... call of CUDA in every function fail until the function makes no
// more calls. Does the same with its allocations of host memory.

namespace tmap::testing {
namespace {

/// Holds a pool of 8 slots that may grow to `max_capacity`, and the streams, leases and capture of
/// a scenario.
struct bench {
  explicit bench(std::uint64_t most) : max_capacity(most) { leases.reserve(8); }

  void make() { maps = *pool::map_pool::create({.capacity = 8, .max_capacity = max_capacity}, fake_streams::calls()); }

  result<void> take(std::uint64_t count, cudaStream_t stream) {
    auto taken = maps->take(count, stream);
    if (!taken) return failure{taken.error()};
    leases.push_back(std::move(*taken));
    return {};
  }
  /// Reads on `stream` all slots that were taken on `home`.
  result<void> take_reading(std::uint64_t count, cudaStream_t stream, cudaStream_t home) {
    auto taken = maps->take(count, stream, nullptr, {leases, home});
    if (!taken) return failure{taken.error()};
    leases.push_back(std::move(*taken));
    return {};
  }
  result<void> use_on(cudaStream_t stream, cudaStream_t home) { return maps->use_on(leases.back(), stream, home); }
  result<void> release() {
    pool::lease_ptr last = std::move(leases.back());
    leases.pop_back();
    return maps->release(std::move(last));
  }
  result<void> withdraw() {
    pool::lease_ptr last = std::move(leases.back());
    leases.pop_back();
    return maps->withdraw(std::move(last));
  }
  void capture(cudaStream_t stream) {
    cuda.begin_capture(stream);
    captured = stream;
  }
  void end_capture() {
    if (captured != nullptr) cuda.destroy_graph(cuda.end_capture(captured));
    captured = nullptr;
  }

  fake_streams cuda;
  const std::uint64_t max_capacity;
  const cudaStream_t s1 = cuda.open_stream();
  const cudaStream_t s2 = cuda.open_stream();
  const cudaStream_t s3 = cuda.open_stream();
  std::shared_ptr<pool::map_pool> maps;
  std::vector<pool::lease_ptr> leases;
  cudaStream_t captured{};
};

struct scenario {
  const char* name;
  std::uint64_t max_capacity;
  void (*prepare)(bench& b);
  result<void> (*act)(bench& b);
  std::uint64_t may_lose;  ///< slots that a failed call leaves pending for good, because no event marks their end
  bool retries{};          ///< a late end may fail, and the next call makes up for it
};

std::ostream& operator<<(std::ostream& out, const scenario& s) {
  return out << s.name;
}

void lend_and_return(bench& b, std::uint64_t count, cudaStream_t stream) {
  ASSERT_TRUE(b.take(count, stream).has_value());
  ASSERT_TRUE(b.release().has_value());
}

void return_8_in_two_parts(bench& b) {
  ASSERT_TRUE(b.take(4, b.s1).has_value());
  ASSERT_TRUE(b.take(4, b.s2).has_value());
  ASSERT_TRUE(b.release().has_value());
  ASSERT_TRUE(b.release().has_value());
}

void return_late(bench& b) {
  ASSERT_TRUE(b.take(4, b.s1).has_value());
  ASSERT_TRUE(b.use_on(b.s2, b.s1).has_value());
  b.capture(b.s1);
  ASSERT_TRUE(b.release().has_value());
  b.end_capture();
}

void take_three(bench& b) {
  for (int lease = 0; lease < 3; ++lease) ASSERT_TRUE(b.take(1, b.s1).has_value());
}

const scenario scenarios[] = {
    {"take_free", 0, [](bench&) {}, [](bench& b) { return b.take(4, b.s1); }, 0},
    {"take_own", 0, [](bench& b) { lend_and_return(b, 8, b.s1); }, [](bench& b) { return b.take(4, b.s1); }, 0},
    {"take_completed", 0,
     [](bench& b) {
       return_8_in_two_parts(b);
       b.cuda.run_all();
     },
     [](bench& b) { return b.take(8, b.s3); }, 0},
    {"take_grown", 16, return_8_in_two_parts, [](bench& b) { return b.take(8, b.s3); }, 0},
    {"take_waiting", 0, return_8_in_two_parts, [](bench& b) { return b.take(8, b.s3); }, 0},
    {"take_captured", 0, [](bench& b) { b.capture(b.s1); }, [](bench& b) { return b.take(4, b.s1); }, 0},
    {"take_reading", 0, take_three, [](bench& b) { return b.take_reading(4, b.s2, b.s1); }, 0},
    {"take_reading_captured", 0,
     [](bench& b) {
       take_three(b);
       b.capture(b.s2);
     },
     [](bench& b) { return b.take_reading(4, b.s2, b.s1); }, 3},
    {"take_after_late_ends", 0, return_late, [](bench& b) { return b.take(8, b.s3); }, 0},
    {"use_on", 0, [](bench& b) { ASSERT_TRUE(b.take(4, b.s1).has_value()); },
     [](bench& b) { return b.use_on(b.s2, b.s1); }, 0},
    {"use_on_captured", 0,
     [](bench& b) {
       ASSERT_TRUE(b.take(4, b.s1).has_value());
       b.capture(b.s2);
     },
     [](bench& b) { return b.use_on(b.s2, b.s1); }, 0},
    {"use_on_joining", 0,
     [](bench& b) {
       b.capture(b.s1);
       ASSERT_TRUE(b.take(4, b.s1).has_value());
     },
     [](bench& b) { return b.use_on(b.s2, b.s1); }, 0},
    {"release", 0,
     [](bench& b) {
       ASSERT_TRUE(b.take(4, b.s1).has_value());
       ASSERT_TRUE(b.use_on(b.s2, b.s1).has_value());
     },
     [](bench& b) { return b.release(); }, 4},
    {"release_after_capture", 0,
     [](bench& b) {
       b.capture(b.s1);
       ASSERT_TRUE(b.take(4, b.s1).has_value());
       b.end_capture();
     },
     [](bench& b) { return b.release(); }, 4},
    {"release_in_another_capture", 0,
     [](bench& b) {
       ASSERT_TRUE(b.take(4, b.s1).has_value());
       b.capture(b.s1);
     },
     [](bench& b) { return b.release(); }, 4},
    {"withdraw", 0,
     [](bench& b) {
       b.capture(b.s1);
       ASSERT_TRUE(b.take(4, b.s1).has_value());
     },
     [](bench& b) { return b.withdraw(); }, 4, true},
    {"release_after_late_ends", 0,
     [](bench& b) {
       return_late(b);
       ASSERT_TRUE(b.take(2, b.s3).has_value());
     },
     [](bench& b) { return b.release(); }, 4, true},
};

/// States what fails, and how the test detects it.
struct shortage {
  void (*plan)(bench& b, std::uint64_t n);  ///< nothing fails if n is 0
  std::uint64_t (*made)(const bench& b);
  status expected;
};

const shortage of_calls{[](bench& b, std::uint64_t n) { b.cuda.fail_call(n, cudaErrorUnknown); },
                        [](const bench& b) { return b.cuda.calls_made(); }, status::cuda_failure};
const shortage of_memory{[](bench&, std::uint64_t n) { fail_allocation(n); },
                         [](const bench&) { return allocations_made(); }, status::out_of_memory};
const shortage of_all_memory{[](bench&, std::uint64_t n) { fail_allocation(n, true); },
                             [](const bench&) { return allocations_made(); }, status::out_of_memory};

/// Gives everything back and checks that no slot, event or memory is missing.
void expect_nothing_missing(bench& b, std::uint64_t may_lose) {
  EXPECT_EQ(sum_of(b.maps->counts()), b.maps->counts().capacity);
  b.end_capture();
  while (!b.leases.empty()) EXPECT_TRUE(b.release().has_value());
  ASSERT_TRUE(b.take(1, b.s3).has_value()) << "the pool works";
  EXPECT_TRUE(b.release().has_value());
  b.cuda.run_all();
  const slot_counts counts = b.maps->counts();
  EXPECT_EQ(counts.free + counts.pending, counts.capacity);
  EXPECT_LE(counts.pending, may_lose);
  if (counts.pending == 0) {
    ASSERT_TRUE(b.take(8, b.s1).has_value()) << "the slots are in one piece";
    EXPECT_TRUE(b.release().has_value());
  }
  b.maps.reset();
  EXPECT_EQ(b.cuda.live_events(), 0u);
  EXPECT_EQ(b.cuda.live_allocations(), 0u);
  EXPECT_TRUE(b.cuda.violations().empty()) << b.cuda.violations().front();
}

/// Returns whether the failure of a call does not reach the caller: the mode stays relaxed, or the
/// event is destroyed with the pool.
bool may_fail_unseen(std::optional<pool_call> call) {
  return call == pool_call::exchange_capture_mode || call == pool_call::destroy_event;
}

/// Runs a scenario as a service does.
result<void> act(const scenario& s, bench& b) {
  try {
    return s.act(b);
  } catch (const std::bad_alloc&) {
    return failure{error{.code = status::out_of_memory}};
  }
}

void expect_same(const slot_counts& after, const slot_counts& before) {
  EXPECT_EQ(after.capacity, before.capacity);
  EXPECT_EQ(after.free, before.free);
  EXPECT_EQ(after.leased, before.leased);
  EXPECT_EQ(after.pending, before.pending);
  EXPECT_EQ(after.captured, before.captured);
}

/// Returns false once the function makes fewer than n calls.
bool fails_well(const scenario& s, const shortage& what, std::uint64_t n) {
  const std::uint64_t may_lose = what.expected == status::out_of_memory ? 0 : s.may_lose;
  bench b{s.max_capacity};
  b.make();
  s.prepare(b);
  const slot_counts before = b.maps->counts();
  what.plan(b, n);
  const std::uint64_t made = what.made(b);
  const result<void> outcome = act(s, b);
  const bool was_reached = what.made(b) - made >= n;
  what.plan(b, 0);
  if (outcome) {
    EXPECT_TRUE(!was_reached || s.retries || may_fail_unseen(b.cuda.failed_call()));
    expect_nothing_missing(b, 0);
    return was_reached;
  }
  EXPECT_TRUE(was_reached);
  EXPECT_EQ(outcome.error().code, what.expected);
  if (what.expected == status::cuda_failure) {
    EXPECT_EQ(outcome.error().cuda_code, cudaErrorUnknown);
  }
  if (may_lose == 0) expect_same(b.maps->counts(), before);
  expect_nothing_missing(b, may_lose);
  return true;
}

std::uint64_t failures_of(const scenario& s, const shortage& what) {
  std::uint64_t n = 1;
  while (fails_well(s, what, n) && !::testing::Test::HasFailure()) {
    if (++n == 1000) ADD_FAILURE() << "no end of it";
  }
  return n - 1;
}

class nth_call : public ::testing::TestWithParam<scenario> {};

TEST_P(nth_call, fails_and_nothing_is_lost_or_changed) {
  EXPECT_GT(failures_of(GetParam(), of_calls), 0u) << "the scenario makes calls";
}

class nth_allocation : public ::testing::TestWithParam<scenario> {};

TEST_P(nth_allocation, fails_and_nothing_is_lost_or_changed) {
  SCOPED_TRACE("one allocation fails");
  failures_of(GetParam(), of_memory);
}

TEST_P(nth_allocation, and_all_after_it_fail_and_nothing_is_lost_or_changed) {
  SCOPED_TRACE("no memory is left");
  failures_of(GetParam(), of_all_memory);
}

INSTANTIATE_TEST_SUITE_P(pool, nth_call, ::testing::ValuesIn(scenarios),
                         [](const auto& tested) { return std::string{tested.param.name}; });
INSTANTIATE_TEST_SUITE_P(pool, nth_allocation, ::testing::ValuesIn(scenarios),
                         [](const auto& tested) { return std::string{tested.param.name}; });

TEST(nth_call_of, create) {
  std::uint64_t n = 0;
  for (bool was_reached = true; was_reached;) {
    bench b{0};
    b.cuda.fail_call(++n, cudaErrorUnknown);
    const auto made = pool::map_pool::create({.capacity = 8}, fake_streams::calls());
    was_reached = b.cuda.calls_made() >= n;
    if (!made) {
      EXPECT_EQ(b.cuda.live_allocations(), 0u);
    } else if (was_reached) {
      EXPECT_EQ(b.cuda.failed_call(), pool_call::exchange_capture_mode);
    }
  }
  EXPECT_EQ(n, 4u) << "exchange, allocate, exchange";
}

TEST(nth_allocation_of, create) {
  std::uint64_t failed = 0;
  for (bool was_made = false; !was_made; ++failed) {
    bench b{0};
    fail_allocation(failed + 1);
    try {
      was_made = pool::map_pool::create({.capacity = 8}, fake_streams::calls()).has_value();
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(b.cuda.live_allocations(), 0u);
    }
    fail_allocation(0);
  }
  EXPECT_GT(failed, 3u);
}

/// Functions that must not fail need no memory.
TEST(nth_allocation_of, counts_release_and_the_end_are_none) {
  bench b{0};
  b.make();
  return_8_in_two_parts(b);
  ASSERT_TRUE(b.take(8, b.s3).has_value());
  ASSERT_TRUE(b.use_on(b.s1, b.s3).has_value());
  ASSERT_TRUE(b.use_on(b.s2, b.s3).has_value());
  b.capture(b.s2);
  fail_allocation(1, true);
  EXPECT_TRUE(b.release().has_value());
  EXPECT_EQ(b.maps->counts().pending, 8u);
  EXPECT_EQ(b.maps->device_bytes(), pool::slab_bytes(8));
  EXPECT_EQ(allocations_made(), 0u);
  fail_allocation(0);
  b.end_capture();
  ASSERT_TRUE(b.take(8, b.s1).has_value()) << "the late end was noted";
  fail_allocation(1, true);
  EXPECT_TRUE(b.release().has_value());
  b.maps->disown();
  b.maps.reset();
  EXPECT_EQ(allocations_made(), 0u);
  fail_allocation(0);
}

TEST(nth_call_of, the_end) {
  for (std::uint64_t n = 1; n < 6; ++n) {
    bench b{0};
    b.make();
    lend_and_return(b, 4, b.s1);
    b.cuda.fail_call(n, cudaErrorUnknown);
    b.maps.reset();
    EXPECT_LE(b.cuda.live_allocations() + b.cuda.live_events(), 1u) << "all that could be freed was freed";
  }
}

TEST(nth_call_of, counts) {
  for (std::uint64_t n = 1; n < 6; ++n) {
    bench b{0};
    b.make();
    return_8_in_two_parts(b);
    b.cuda.run_all();
    b.cuda.fail_call(n, cudaErrorUnknown);
    EXPECT_EQ(sum_of(b.maps->counts()), 8u);
    b.cuda.fail_call(0, cudaSuccess);
    EXPECT_EQ(b.maps->counts().free, 8u);
  }
}

TEST(nth_call_of, release_keeps_the_event_that_could_not_be_recorded) {
  bench b{0};
  b.make();
  for (int lease = 0; lease < 4; ++lease) {
    ASSERT_TRUE(b.take(1, b.s1).has_value());
    b.cuda.fail_call(pool_call::record_event, 1, cudaErrorUnknown);
    EXPECT_FALSE(b.release().has_value());
  }
  EXPECT_EQ(b.cuda.live_events(), 1u);
  EXPECT_EQ(b.maps->counts().pending, 4u) << "never lent again";
}

TEST(broken_context, every_call_says_so_and_the_counts_stay) {
  bench b{16};
  b.make();
  ASSERT_TRUE(b.take(4, b.s1).has_value());
  b.cuda.break_context(cudaErrorIllegalAddress);
  for (const result<void>& outcome : {b.take(1, b.s1), b.use_on(b.s2, b.s1), b.release()}) {
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().code, status::earlier_asynchronous_error);
    EXPECT_EQ(outcome.error().cuda_code, cudaErrorIllegalAddress);
  }
  EXPECT_EQ(sum_of(b.maps->counts()), 8u);
}

}  // namespace
}  // namespace tmap::testing
