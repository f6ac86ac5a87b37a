// SPDX-License-Identifier: Apache-2.0
#include "apps/grouped_gemm/routing.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "apps/bench/timing.hpp"
#include "apps/grouped_gemm/routed_layer.hpp"

namespace tmap::bench {
namespace {

constexpr double seconds_a_shape = 3;
constexpr std::size_t least_rounds = 15;
constexpr std::size_t most_rounds = 300;

const std::vector<layer_shape>& layer_shapes() {
  static const std::vector<layer_shape> shapes{
      {8, 8192, 4096, 14336, row_weights::half_plus_u},
      {32, 8192, 7168, 2048, row_weights::u},
      {128, 16384, 2048, 768, row_weights::u_squared},
      {1024, 65536, 512, 1024, row_weights::equal},
      {256, 2048, 7168, 2048, row_weights::u_squared},
      {128, 256, 2048, 768, row_weights::u_squared},
      {1024, 2048, 512, 1024, row_weights::u_squared},
      {32, 64, 2048, 768, row_weights::u},
      {8, 64, 4096, 1536, row_weights::u},
      {8, 64, 2048, 768, row_weights::u},
  };
  return shapes;
}

/// What is timed, in the order of `ways_of`.
enum way : std::size_t {
  routing,
  set_up,
  routing_with_set_up,
  product,
  one_ready,
  one_apart,
  one_fused,
  two_ready,
  two_apart,
  two_ahead,
  two_fused,
  way_count,
};

using enqueue = std::function<void(cudaStream_t)>;

std::array<enqueue, way_count> ways_of(const routed_layer& of) {
  const auto both = [&of](cudaStream_t stream) {
    of.multiply(stream, 0);
    of.multiply(stream, 1);
  };
  std::array<enqueue, way_count> ways;
  ways[routing] = [&](cudaStream_t s) { of.route(s); };
  ways[set_up] = [&](cudaStream_t s) { of.set_up(s, 0); };
  ways[routing_with_set_up] = [&](cudaStream_t s) { of.route_and_set_up(s, 1); };
  ways[product] = [&](cudaStream_t s) { of.multiply(s, 0); };
  ways[one_ready] = [&](cudaStream_t s) { of.route(s), of.multiply(s, 0); };
  ways[one_apart] = [&](cudaStream_t s) { of.route(s), of.call_library(s, 0); };
  ways[one_fused] = [&](cudaStream_t s) { of.route_and_set_up(s, 1), of.multiply(s, 0); };
  ways[two_ready] = [&, both](cudaStream_t s) { of.route(s), both(s); };
  ways[two_apart] = [&](cudaStream_t s) { of.route(s), of.call_library(s, 0), of.call_library(s, 1); };
  ways[two_ahead] = [&, both](cudaStream_t s) { of.route(s), of.set_up(s, 0), of.set_up(s, 1), both(s); };
  ways[two_fused] = [&, both](cudaStream_t s) { of.route_and_set_up(s, 2), both(s); };
  return ways;
}

layer_traces traces_of(const routed_layer& of, const enqueue& run, const timer& time) {
  of.poison();
  run(time.stream());
  time.drain();
  return of.traces();
}

bool has_poison(const std::vector<unsigned char>& results) {
  for (std::size_t i = 0; i + 1 < results.size(); i += 2) {
    if (results[i] == 0xff && results[i + 1] == 0xff) return true;
  }
  return false;
}

/// Every order must leave the same bytes: ends, maps, records, sums of tiles, results.
bool is_right(const routed_layer& of, const std::array<enqueue, way_count>& ways, const timer& time) {
  const layer_traces want = traces_of(of, ways[two_apart], time);
  std::vector<std::int64_t> ends(of.sizes().size());
  std::partial_sum(of.sizes().begin(), of.sizes().end(), ends.begin());
  bool is_good = std::equal(ends.begin(), ends.end(), want.ends.begin(), want.ends.end());
  for (const auto& results : want.results) is_good = is_good && !has_poison(results);
  for (const way other : {two_ahead, two_fused}) {
    const layer_traces got = traces_of(of, ways[other], time);
    is_good = is_good && got.ends == want.ends;
    for (std::uint32_t i = 0; i < layer_products; ++i) {
      is_good = is_good && got.workspaces[i] == want.workspaces[i] && got.results[i] == want.results[i];
    }
  }
  return is_good;
}

class executable {
 public:
  executable(const timer& time, routed_layer& of, const enqueue& run, int chain)
      : graph_(
            time.stream(), [&](cudaStream_t stream) { run(stream), of.move_on(); }, chain) {
    require(cudaGraphInstantiate(&executable_, graph_.get(), 0));
    require(cudaGraphUpload(executable_, time.stream()));
  }
  ~executable() { cudaGraphExecDestroy(executable_); }
  executable(const executable&) = delete;
  executable& operator=(const executable&) = delete;
  cudaGraphExec_t get() const { return executable_; }

 private:
  captured_graph graph_;
  cudaGraphExec_t executable_{};
};

using samples = std::array<std::vector<double>, way_count>;

/// Microseconds of one run, by rounds: each launches all graphs once, in an order of its own, so that all meet the
/// same clocks.
samples timed(routed_layer& of, const std::array<enqueue, way_count>& ways, const timer& time) {
  constexpr int warm_up = 2;
  const double once = time.stream_microseconds(ways[two_apart], 5);
  const int chain = std::clamp(static_cast<int>(4000 / once), 4, 32);
  std::vector<std::unique_ptr<executable>> graphs;
  for (const enqueue& run : ways) graphs.push_back(std::make_unique<executable>(time, of, run, chain));
  std::array<std::size_t, way_count> order;
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(1);
  samples all;
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + std::chrono::duration<double>(seconds_a_shape);
  for (std::size_t round = 0; round < most_rounds && (round < least_rounds || clock::now() < end); ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      const double microseconds = time.launch_microseconds(graphs[i]->get()) / chain;
      if (round >= warm_up) all[i].push_back(microseconds);
    }
  }
  return all;
}

/// What one way takes more than another: the median over rounds, and how far off it may be.
struct difference {
  double median;
  double off;
};
difference more_than(const samples& all, way of, way other) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < all[of].size(); ++i) differences.push_back(all[of][i] - all[other][i]);
  std::sort(differences.begin(), differences.end());
  const std::size_t count = differences.size();
  // The middle half's width shrinks with the root of how many there are.
  const double spread = differences[count * 3 / 4] - differences[count / 4];
  return {median(differences), spread / std::sqrt(static_cast<double>(count))};
}

void print_difference(const samples& all, way of, way other) {
  const difference found = more_than(all, of, other);
  std::printf(" %.2f +- %.2f |", found.median, found.off);
}

void print_line(const layer_shape& shape, const samples& all) {
  std::printf("| %s |", shape.name().c_str());
  for (const way alone : {routing, set_up, routing_with_set_up, product}) std::printf(" %.1f |", median(all[alone]));
  std::printf(" %.1f |", median(all[one_ready]));
  print_difference(all, one_apart, one_ready);
  print_difference(all, one_fused, one_ready);
  std::printf(" %.1f |", median(all[two_ready]));
  print_difference(all, two_apart, two_ready);
  print_difference(all, two_ahead, two_ready);
  print_difference(all, two_fused, two_ready);
  const double saved = more_than(all, two_apart, two_fused).median;
  std::printf(" %.2f | %.1f | %zu |\n", saved, saved / median(all[two_apart]) * 100, all[routing].size());
  std::fflush(stdout);
}

void print_header() {
  std::printf(
      "Microseconds, in a graph. \"Ready\": the routing step's last kernel and products whose maps are there already; "
      "behind it what each way of making maps takes more.\n\n"
      "| groups, rows, width, hidden | routing | set-up | routing with set-up | product | one product: ready | "
      "set-up a launch | by routing | two products: ready | set-ups before each | both ahead | by routing | "
      "saved by routing | %% of all | rounds |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
}

}  // namespace

int measure_routing() {
  const timer time;
  const layer_memory memory;
  int wrong = 0;
  print_header();
  for (const layer_shape& shape : layer_shapes()) {
    routed_layer layer(shape, memory);
    const auto ways = ways_of(layer);
    if (is_right(layer, ways, time)) {
      print_line(shape, timed(layer, ways, time));
      continue;
    }
    ++wrong;
    std::printf("| %s | WRONG: results differ |\n", shape.name().c_str());
  }
  return wrong;
}

}  // namespace tmap::bench
