// SPDX-License-Identifier: Apache-2.0
// Sorts given choices by expert, and compares all results with plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "moe/on_device.hpp"
#include "support/run_seed.hpp"

namespace tmap::moe::testing {
namespace {

/// Given choices in device memory, and all that a call on them needs.
class given_on_device {
 public:
  given_on_device(const route_sizes& sizes, std::uint32_t id_bytes, bool has_weights)
      : sizes_(sizes),
        id_bytes_(id_bytes),
        ids_(sizes.choices() * id_bytes),
        weights_(sizes.choices()),
        results_(sizes),
        problem_(problem_of(sizes)) {
    problem_.choices =
        given_choices{.ids = ids_.data(), .bytes = id_bytes, .weights = has_weights ? weights_.data() : nullptr};
    scratch_bytes_ = workspace_bytes(problem_).value();
  }

  void set(const std::vector<std::int64_t>& ids, const std::vector<float>& weights) {
    std::vector<unsigned char> bytes(ids.size() * id_bytes_);
    for (std::size_t i = 0; i < ids.size(); ++i) std::memcpy(&bytes[i * id_bytes_], &ids[i], id_bytes_);
    ids_.upload(bytes);
    weights_.upload(weights);
    want_ = sort_by_expert(sizes_, ids, has_weights() ? weights : std::vector<float>{});
    results_.reset();
  }
  result<void> enqueue(cudaStream_t stream) const {
    return route(problem_, results_.places(true), results_.reports().on(stream, {scratch_.data(), scratch_bytes_}));
  }
  void expect(const std::string& what) const { results_.expect(want_, what); }
  const results_on_device& results() const { return results_; }
  const sorted_choices& want() const { return want_; }
  const route_problem& problem() const { return problem_; }

 private:
  bool has_weights() const { return std::get<given_choices>(problem_.choices).weights != nullptr; }

  route_sizes sizes_;
  std::uint32_t id_bytes_;
  device_array<unsigned char> ids_;
  device_array<float> weights_;
  results_on_device results_;
  route_problem problem_;
  std::uint64_t scratch_bytes_{};
  device_array<unsigned char> scratch_{std::uint64_t{2} << 20};
  sorted_choices want_;
};

std::vector<float> random_weights(std::mt19937_64& random, std::uint64_t count) {
  std::vector<float> made;
  for (std::uint64_t i = 0; i < count; ++i) made.push_back(static_cast<float>(random() % 1000) / 8);
  return made;
}

/// Draws ids from `first` up to, but not including, `end`.
std::vector<std::int64_t> random_ids(std::mt19937_64& random, std::uint64_t count, std::int64_t first,
                                     std::int64_t end) {
  std::vector<std::int64_t> made;
  for (std::uint64_t i = 0; i < count; ++i) {
    made.push_back(first + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end - first)));
  }
  return made;
}

class moe_route : public tmap::testing::gpu_test {
 protected:
  void check(given_on_device& device, const std::vector<std::int64_t>& ids, const std::vector<float>& weights,
             const std::string& what) {
    device.set(ids, weights);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    TMAP_ASSERT_OK(device.enqueue(nullptr));
    device.expect(what);
  }
  /// Checks random, equal and hostile ids of these sizes.
  void check_sizes(const route_sizes& sizes, std::uint32_t id_bytes = 4) {
    const std::string what = std::to_string(sizes.tokens) + " tokens, " + std::to_string(sizes.experts) +
                             " experts, k " + std::to_string(sizes.k) + ", alignment " +
                             std::to_string(sizes.alignment) + ", rows " + std::to_string(sizes.rows);
    std::mt19937_64 random = tmap::testing::run_random(sizes.choices() + sizes.experts);
    given_on_device device(sizes, id_bytes, true);
    const std::vector<float> weights = random_weights(random, sizes.choices());
    check(device, random_ids(random, sizes.choices(), 0, sizes.experts), weights, what + ", random");
    check(device, std::vector<std::int64_t>(sizes.choices(), sizes.experts - 1), weights, what + ", all on the last");
    check(device, hostile_ids(random, sizes, id_bytes), weights, what + ", hostile");
    check(device, std::vector<std::int64_t>(sizes.choices(), -1), weights, what + ", none");
  }
  static std::vector<std::int64_t> hostile_ids(std::mt19937_64& random, const route_sizes& sizes,
                                               std::uint32_t id_bytes) {
    std::vector<std::int64_t> ids = random_ids(random, sizes.choices(), -1, sizes.experts + 1);
    std::vector<std::int64_t> wild{-2, std::numeric_limits<std::int32_t>::min(),
                                   std::numeric_limits<std::int32_t>::max(), std::int64_t{sizes.experts}};
    if (id_bytes == 8) {
      wild.insert(wild.end(), {std::int64_t{1} << 32, std::numeric_limits<std::int64_t>::min(),
                               std::numeric_limits<std::int64_t>::max()});
    }
    for (std::int64_t& id : ids) {
      if (random() % 16 == 0) id = wild[random() % wild.size()];
    }
    return ids;
  }
};

TEST_F(moe_route, few_tokens) {
  for (const std::uint64_t tokens : {0u, 1u, 2u, 3u, 31u, 33u, 127u, 129u, 257u, 1000u}) {
    check_sizes({tokens, 256, 8});
    check_sizes({tokens, 7, 3});
    check_sizes({tokens, 1, 1});
  }
}

TEST_F(moe_route, all_numbers_of_experts) {
  for (const std::uint32_t experts : {1u, 2u, 31u, 32u, 33u, 100u, 255u, 512u, 1023u, 1024u}) {
    check_sizes({777, experts, 5});
    check_sizes({64, experts, std::min(experts, max_k)});
  }
}

TEST_F(moe_route, around_each_number_of_blocks) {
  for (const std::uint64_t step : {1024u, 2048u, 4096u, 8192u, 16384u, 57344u, 65536u}) {
    for (const std::uint64_t tokens : {step - 1, step, step + 1}) check_sizes({tokens, 128, 1});
  }
}

TEST_F(moe_route, more_choices_than_a_cluster_takes) {
  check_sizes({70'000, 256, 1});
  check_sizes({70'000 / 7, 1024, 7});
  check_sizes({8192, 160, 8 + 1});
}

TEST_F(moe_route, blocks_whose_choices_begin_inside_a_token) {
  for (const std::uint32_t k : {3u, 7u, 31u, 32u}) {
    for (const std::uint64_t choices : {5000u, 32768u, 65536u, 70000u}) check_sizes({choices / k, 100, k});
  }
}

TEST_F(moe_route, a_million_choices) {
  check_sizes({125'000, 256, 8});
}

TEST_F(moe_route, more_tiles_than_blocks) {
  check_sizes({400'000, 33, 6});
}

TEST_F(moe_route, ids_of_64_bits) {
  check_sizes({1000, 64, 4}, 8);
  check_sizes({20'000, 64, 4}, 8);
}

TEST_F(moe_route, alignment_leaves_gaps) {
  for (const std::uint32_t alignment : {2u, 8u, 16u, 64u, 128u, 256u}) {
    check_sizes({1, 256, 8, alignment});
    check_sizes({500, 100, 4, alignment});
    check_sizes({30'000, 100, 4, alignment});
  }
}

TEST_F(moe_route, choices_that_do_not_fit_are_skipped_and_reported) {
  for (const std::uint64_t rows : {128u, 256u, 1024u, 1920u, 100'096u}) {
    check_sizes({500, 16, 4, 128, rows});
    check_sizes({500, 16, 4, 1, rows + 1});
    check_sizes({30'000, 16, 4, 128, rows});
  }
}

TEST_F(moe_route, weights_that_are_not_given_are_1) {
  std::mt19937_64 random = tmap::testing::run_random(21);
  const route_sizes sizes{300, 64, 6};
  given_on_device device(sizes, 4, false);
  check(device, random_ids(random, sizes.choices(), 0, 64), random_weights(random, sizes.choices()), "no weights");
}

TEST_F(moe_route, results_that_are_not_wanted_are_not_needed) {
  std::mt19937_64 random = tmap::testing::run_random(22);
  for (const std::uint64_t tokens : {std::uint64_t{100}, std::uint64_t{20'000}}) {
    const route_sizes sizes{tokens, 64, 6};
    given_on_device device(sizes, 4, true);
    device.set(random_ids(random, sizes.choices(), 0, 64), random_weights(random, sizes.choices()));
    const device_array<unsigned char> scratch(std::uint64_t{2} << 20);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    const run plain{.where = {cuda::stream_ref{cudaStream_t{}}, {scratch.data(), scratch.bytes()}}};
    TMAP_ASSERT_OK(route(device.problem(), {}, plain));
    TMAP_ASSERT_OK(route(device.problem(), {.counts = device.results().counts().data()}, plain));
    device.results().counts().expect(device.want().counts, "counts alone");
  }
}

TEST_F(moe_route, a_graph_replays_with_other_ids) {
  for (const std::uint64_t tokens : {std::uint64_t{512}, std::uint64_t{12'000}}) {
    const route_sizes sizes{tokens, 64, 6, 16};
    given_on_device device(sizes, 4, true);
    const recorded_call graph([&](cudaStream_t stream) { return device.enqueue(stream); });
    std::mt19937_64 random = tmap::testing::run_random(23);
    for (int i = 0; i < 20; ++i) {
      const std::int64_t most = 1 + static_cast<std::int64_t>(random() % 66);
      device.set(random_ids(random, sizes.choices(), -1, most), random_weights(random, sizes.choices()));
      graph.replay();
      device.expect("replay " + std::to_string(i));
    }
  }
}

TEST_F(moe_route, two_streams_with_results_of_their_own) {
  const route_sizes sizes{12'000, 64, 6};
  std::mt19937_64 random = tmap::testing::run_random(24);
  given_on_device devices[]{{sizes, 4, true}, {sizes, 8, false}};
  cudaStream_t streams[2];
  for (int side = 0; side < 2; ++side) {
    devices[side].set(random_ids(random, sizes.choices(), 0, 64), random_weights(random, sizes.choices()));
    TMAP_ASSERT_CUDA(cudaStreamCreateWithFlags(&streams[side], cudaStreamNonBlocking));
  }
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 50; ++i) {
    for (int side = 0; side < 2; ++side) TMAP_ASSERT_OK(devices[side].enqueue(streams[side]));
  }
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  for (int side = 0; side < 2; ++side) {
    devices[side].expect("stream " + std::to_string(side));
    TMAP_ASSERT_CUDA(cudaStreamDestroy(streams[side]));
  }
}

TEST_F(moe_route, a_checked_call_names_the_bad_choice) {
  const route_sizes sizes{10, 4, 2};
  given_on_device device(sizes, 4, true);
  std::vector<std::int64_t> ids(sizes.choices(), 3);
  ids[7] = 4;
  device.set(ids, std::vector<float>(sizes.choices(), 1));
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  const auto got = route(device.problem(), device.results().places(true),
                         {.where = {cuda::stream_ref{cudaStream_t{}}}, .check = fault_check::sync});
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, status::bad_items);
  EXPECT_EQ(got.error().found, 1u);
  EXPECT_EQ(got.error().allowed, sizes.choices());
  EXPECT_EQ(got.error().bad.index, 7u);
  EXPECT_NE(to_string(got.error()).find("choice 7: expert (there is no expert of this number)"), std::string::npos)
      << to_string(got.error());
}

}  // namespace
}  // namespace tmap::moe::testing
