// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <utility>

#include "pool/faults.hpp"
#include "pool/pool_fixture.hpp"

// Runs small host programs against every order in which the device may execute their work.

namespace tmap::testing {
namespace {

/// Calls `run(choose)` for every sequence of results of `choose(n)`, which are 0 to n - 1, until it
/// returns false. Returns the number of sequences.
template <class Run>
std::uint64_t for_every_order(const Run& run) {
  std::vector<std::pair<std::size_t, std::size_t>> path;  // the choice, and the number of choices
  for (std::uint64_t orders = 1;; ++orders) {
    std::size_t depth = 0;
    const bool more = run([&](std::size_t n) {
      if (depth == path.size()) path.emplace_back(0, n);
      return path[depth++].first;
    });
    while (!path.empty() && path.back().first + 1 == path.back().second) path.pop_back();
    if (path.empty() || !more) return orders;
    ++path.back().first;
  }
}

struct world {
  world(const pool::pool_calls& calls, std::uint64_t capacity) {
    maps = *pool::map_pool::create({.capacity = capacity}, calls);
  }

  /// A take that finds no slots makes no batch, and later steps that use it are skipped.
  void encode(std::size_t index, std::uint64_t count, cudaStream_t stream) {
    auto taken = maps->take(count, stream);
    if (!taken) return;
    batch[index] = {std::move(*taken), next_batch_id()};
    cuda.write(stream, batch[index].slots(), batch[index].count(), batch[index].id);
  }
  void read(std::size_t index, cudaStream_t stream) {
    if (batch[index].lease == nullptr) return;
    cuda.read(stream, batch[index].slots(), batch[index].count(), batch[index].id);
  }
  void use_on(std::size_t index, cudaStream_t stream, cudaStream_t home) {
    if (batch[index].lease != nullptr) static_cast<void>(maps->use_on(batch[index].lease, stream, home));
  }
  void release(std::size_t index) {
    if (batch[index].lease != nullptr) static_cast<void>(maps->release(std::move(batch[index].lease)));
  }
  void use_once(std::size_t index, std::uint64_t count, cudaStream_t stream) {
    encode(index, count, stream);
    read(index, stream);
    release(index);
  }

  fake_streams cuda;
  cudaStream_t s1 = cuda.open_stream();
  cudaStream_t s2 = cuda.open_stream();
  cudaStream_t s3 = cuda.open_stream();
  std::shared_ptr<pool::map_pool> maps;
  fake_batch batch[4];
  cudaGraphExec_t exec{};
};

using host_step = void (*)(world& w);

struct program {
  const char* name;
  std::uint64_t capacity;
  std::vector<host_step> steps;
};

const program programs[] = {
    {"one_slot_over_two_streams",
     1,
     {[](world& w) { w.use_once(0, 1, w.s1); }, [](world& w) { w.use_once(1, 1, w.s2); },
      [](world& w) { w.use_once(2, 1, w.s1); }}},
    {"two_streams_behind_one_batch",
     1,
     {[](world& w) { w.encode(0, 1, w.s1); },
      [](world& w) {
        w.use_on(0, w.s2, w.s1);
        w.read(0, w.s2);
      },
      [](world& w) { w.release(0); }, [](world& w) { w.use_once(1, 1, w.s3); }}},
    {"a_window_over_two_batches",
     2,
     {[](world& w) { w.use_once(0, 1, w.s1); }, [](world& w) { w.use_once(1, 1, w.s2); },
      [](world& w) { w.use_once(2, 2, w.s3); }}},
    {"six_steps_over_three_streams",
     2,
     {[](world& w) { w.encode(0, 1, w.s1); }, [](world& w) { w.encode(1, 1, w.s2); },
      [](world& w) {
        w.use_on(0, w.s2, w.s1);
        w.read(0, w.s2);
        w.release(0);
      },
      [](world& w) {
        w.read(1, w.s2);
        w.release(1);
      },
      [](world& w) { w.use_once(2, 2, w.s3); }, [](world& w) { w.use_once(3, 1, w.s1); }}},
    {"a_handle_used_again",
     1,
     {[](world& w) { w.use_once(0, 1, w.s1); },
      [](world& w) {
        w.cuda.close_stream(w.s1);
        w.s1 = w.cuda.open_stream();
      },
      [](world& w) { w.use_once(1, 1, w.s1); }}},
    {"a_graph_and_an_eager_stream",
     1,
     {[](world& w) {
        w.cuda.begin_capture(w.s1);
        w.use_once(0, 1, w.s1);
        const cudaGraph_t graph = w.cuda.end_capture(w.s1);
        w.exec = w.cuda.instantiate(graph);
        w.cuda.destroy_graph(graph);
      },
      [](world& w) { w.cuda.launch(w.exec, w.s1); }, [](world& w) { w.use_once(1, 1, w.s2); },
      [](world& w) { w.cuda.destroy_exec(w.exec); }, [](world& w) { w.use_once(2, 1, w.s2); }}},
    {"a_release_inside_a_capture",
     1,
     {[](world& w) {
        w.encode(0, 1, w.s1);
        w.read(0, w.s1);
      },
      [](world& w) {
        w.cuda.begin_capture(w.s1);
        w.release(0);
        w.use_once(1, 1, w.s2);
      },
      [](world& w) { w.cuda.destroy_graph(w.cuda.end_capture(w.s1)); }, [](world& w) { w.use_once(2, 1, w.s2); }}},
};

void run_in_order(const program& p, world& w, const std::function<std::size_t(std::size_t)>& choose) {
  std::size_t done = 0;
  for (;;) {
    const std::vector<fake_stream_id> ready = w.cuda.ready();
    const std::size_t host = done < p.steps.size() ? 1 : 0;
    if (host + ready.size() == 0) return;
    const std::size_t chosen = choose(host + ready.size());
    if (host == 1 && chosen == 0) {
      p.steps[done++](w);
    } else {
      w.cuda.step(ready[chosen - host]);
    }
  }
}

struct order_counts {
  std::uint64_t orders{};
  std::uint64_t foreign_ids{};
};

/// Runs all orders, or those up to the first foreign id.
order_counts play(const program& p, const pool::pool_calls& calls, bool expect_clean) {
  order_counts sum;
  sum.orders = for_every_order([&](const auto& choose) {
    world w{calls, p.capacity};
    run_in_order(p, w, choose);
    sum.foreign_ids += w.cuda.foreign_ids();
    if (!expect_clean) return sum.foreign_ids == 0;
    EXPECT_TRUE(w.cuda.violations().empty()) << w.cuda.violations().front();
    EXPECT_EQ(w.maps->counts().free, p.capacity) << "all slots are back";
    return true;
  });
  return sum;
}

TEST(interleavings, no_order_shows_a_foreign_id) {
  for (const program& p : programs) {
    const order_counts counts = play(p, fake_streams::calls(), true);
    EXPECT_EQ(counts.foreign_ids, 0u) << p.name;
    EXPECT_GE(counts.orders, 10u) << p.name;
    RecordProperty(p.name, static_cast<int>(counts.orders));
  }
}

class interleavings_with_fault : public ::testing::TestWithParam<fault> {};

TEST_P(interleavings_with_fault, some_order_shows_it) {
  std::uint64_t foreign_ids = 0;
  for (const program& p : programs) {
    if (foreign_ids == 0) foreign_ids = play(p, GetParam().calls, false).foreign_ids;
  }
  EXPECT_GT(foreign_ids, 0u);
}

INSTANTIATE_TEST_SUITE_P(pool, interleavings_with_fault, ::testing::ValuesIn(faults), name_of);

}  // namespace
}  // namespace tmap::testing
