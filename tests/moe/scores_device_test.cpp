// SPDX-License-Identifier: Apache-2.0
// Chooses experts from logits, and compares choices, weights and order with plain loops.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
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

/// The sizes, types and rules of one case.
struct score_case {
  route_sizes sizes;
  float_type type{};
  score_settings with{};
  bool has_bias{};
  std::uint64_t spare_columns{};  ///< between rows

  std::string text() const {
    return std::to_string(sizes.tokens) + " tokens, " + std::to_string(sizes.experts) + " experts, k " +
           std::to_string(sizes.k) + ", type " + std::to_string(static_cast<int>(type)) + ", scoring " +
           std::to_string(static_cast<int>(with.scoring)) + ", groups " + std::to_string(with.groups.count) + "/" +
           std::to_string(with.groups.chosen) + "/" + std::to_string(static_cast<int>(with.groups.score)) +
           (has_bias ? ", bias" : "") + (with.renormalise ? ", renormalised" : "");
  }
  std::uint64_t pitch() const { return sizes.experts + spare_columns; }
};

std::vector<unsigned char> bytes_of(const std::vector<float>& values, float_type type) {
  std::vector<unsigned char> made(values.size() * float_bytes(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    unsigned char* const at = &made[i * float_bytes(type)];
    const __nv_bfloat16 as_bf16 = __float2bfloat16(values[i]);
    const __half as_f16 = __float2half(values[i]);
    switch (type) {
      case float_type::f32: std::memcpy(at, &values[i], sizeof(float)); break;
      case float_type::bf16: std::memcpy(at, &as_bf16, sizeof(as_bf16)); break;
      case float_type::f16: std::memcpy(at, &as_f16, sizeof(as_f16)); break;
    }
  }
  return made;
}

class scores_on_device {
 public:
  explicit scores_on_device(const score_case& of)
      : of_(of),
        logits_(of.sizes.tokens * of.pitch() * float_bytes(of.type)),
        bias_(of.sizes.experts),
        results_(of.sizes),
        problem_(problem_of(of.sizes)) {
    logits from;
    from.values = {logits_.address(), of.pitch() * float_bytes(of.type)};
    from.type = of.type;
    from.scoring = of.with.scoring;
    from.bias = of.has_bias ? bias_.data() : nullptr;
    from.groups = of.with.groups;
    from.renormalise = of.with.renormalise;
    from.scale = of.with.scale;
    problem_.choices = from;
    scratch_bytes_ = workspace_bytes(problem_).value();
  }

  /// `values` has `pitch` of them for each token, all of which every type can hold.
  void set(const std::vector<float>& values, const std::vector<float>& bias) {
    values_ = values;
    host_bias_ = bias;
    logits_.upload(bytes_of(values, of_.type));
    bias_.upload(bias);
    results_.reset();
  }
  result<void> enqueue(cudaStream_t stream) const {
    return route(problem_, results_.places(false), results_.reports().on(stream, {scratch_.data(), scratch_bytes_}));
  }
  token_choices wanted(std::uint64_t token) const {
    const float* const row = values_.data() + token * of_.pitch();
    return choose({row, row + of_.sizes.experts}, of_.has_bias ? host_bias_ : std::vector<float>{}, of_.with,
                  of_.sizes.k);
  }
  /// Compares the choices with the reference, and the order by expert with the choices.
  void expect(const std::string& what) const {
    const std::vector<std::int32_t> ids = results_.ids().download(what);
    const std::vector<float> weights = results_.weights().download(what);
    std::uint64_t unclear = 0;
    for (std::uint64_t token = 0; token < of_.sizes.tokens; ++token) {
      const token_choices want = wanted(token);
      if (want.is_unclear) ++unclear;
      for (std::size_t j = 0; j < of_.sizes.k && !want.is_unclear; ++j) {
        const std::size_t i = token * of_.sizes.k + j;
        ASSERT_EQ(ids[i], want.ids[j]) << what << ": token " << token << ", choice " << j;
        ASSERT_NEAR(double{weights[i]}, want.weights[j], std::abs(want.weights[j]) * 1e-4 + 1e-30)
            << what << ": token " << token << ", choice " << j;
      }
    }
    EXPECT_LE(unclear * 10, of_.sizes.tokens) << what << ": the reference is not sure";
    results_.expect(sort_by_expert(of_.sizes, {ids.begin(), ids.end()}, weights), what);
  }
  const results_on_device& results() const { return results_; }
  const route_problem& problem() const { return problem_; }
  workspace scratch() const { return {scratch_.data(), scratch_bytes_}; }

 private:
  score_case of_;
  device_array<unsigned char> logits_;
  device_array<float> bias_;
  results_on_device results_;
  route_problem problem_;
  std::uint64_t scratch_bytes_{};
  device_array<unsigned char> scratch_{std::uint64_t{16} << 20};
  std::vector<float> values_;
  std::vector<float> host_bias_;
};

/// Draws multiples of 1/8 from -8 up to 8, of which many are equal.
std::vector<float> grid_values(std::mt19937_64& random, std::uint64_t count) {
  std::vector<float> made;
  for (std::uint64_t i = 0; i < count; ++i) made.push_back((static_cast<float>(random() % 128) - 64) / 8);
  return made;
}

std::vector<float> whole_numbers(std::mt19937_64& random, std::uint64_t count) {
  std::vector<float> made;
  for (std::uint64_t i = 0; i < count; ++i) made.push_back(static_cast<float>(random() % 3));
  return made;
}

class moe_scores : public tmap::testing::gpu_test {
 protected:
  void check(const score_case& of) {
    std::mt19937_64 random = tmap::testing::run_random(of.sizes.choices() * 1024 + of.sizes.experts);
    scores_on_device device(of);
    device.set(grid_values(random, of.sizes.tokens * of.pitch()), whole_numbers(random, of.sizes.experts));
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    TMAP_ASSERT_OK(device.enqueue(nullptr));
    device.expect(of.text());
  }
  static std::vector<score_settings> scorings() {
    return {{.scoring = scoring::softmax_then_top_k},
            {.scoring = scoring::softmax_then_top_k, .renormalise = true, .scale = 2.5f},
            {.scoring = scoring::top_k_then_softmax},
            {.scoring = scoring::sigmoid},
            {.scoring = scoring::sigmoid, .renormalise = true, .scale = 0.5f}};
  }
};

TEST_F(moe_scores, every_scoring_and_type) {
  for (const score_settings& with : scorings()) {
    for (const float_type type : {float_type::f32, float_type::bf16, float_type::f16}) {
      check({{200, 256, 8}, type, with, with.scoring == scoring::sigmoid, 3});
      check({{3, 8, 2}, type, with, false, 0});
    }
  }
}

TEST_F(moe_scores, all_numbers_of_experts) {
  for (const score_settings& with : scorings()) {
    for (const std::uint32_t experts : {1u, 2u, 31u, 32u, 33u, 64u, 65u, 128u, 160u, 257u, 384u, 512u, 513u, 1024u}) {
      check({{50, experts, std::min(experts, 6u)}, float_type::f32, with});
      check({{20, experts, std::min(experts, max_k)}, float_type::bf16, with});
    }
  }
}

TEST_F(moe_scores, no_token_and_one_token) {
  for (const std::uint64_t tokens : {std::uint64_t{0}, std::uint64_t{1}}) check({{tokens, 256, 8}, float_type::bf16});
}

TEST_F(moe_scores, many_tokens) {
  check({{8192, 64, 8}, float_type::bf16});
  for (const std::uint64_t tokens : {31u, 33u, 64u, 129u, 511u, 512u, 513u, 5000u}) {
    check({{tokens, 64, 7}, float_type::bf16});
    check({{tokens, 100, 32}, float_type::f32, {.scoring = scoring::sigmoid}, true});
  }
  check({{20'000, 128, 4, 64}, float_type::f32, {.scoring = scoring::top_k_then_softmax}});
}

TEST_F(moe_scores, groups_of_experts) {
  for (score_settings with : scorings()) {
    with.groups = {.count = 8, .chosen = 4, .score = group_scoring::largest};
    check({{300, 256, 8}, float_type::f32, with, with.scoring == scoring::sigmoid});
    with.groups = {.count = 4, .chosen = 1, .score = group_scoring::largest};
    check({{300, 20, 5}, float_type::bf16, with});
    with.groups = {.count = 32, .chosen = 7, .score = group_scoring::largest};
    check({{100, 1024, 32}, float_type::f32, with});
    with.groups = {.count = 4, .chosen = 4, .score = group_scoring::sum_of_two_largest};
    check({{100, 64, 32}, float_type::f32, with});
    if (with.scoring == scoring::sigmoid) continue;  // sums of sigmoids are too close to each other
    with.groups = {.count = 8, .chosen = 3, .score = group_scoring::sum_of_two_largest};
    check({{300, 256, 8}, float_type::f32, with});
    check({{300, 16, 6}, float_type::f32, with});
  }
}

TEST_F(moe_scores, groups_by_two_sigmoids_with_a_bias) {
  score_case of{{8, 32, 4}, float_type::f32, {.scoring = scoring::sigmoid, .renormalise = true}, true};
  of.with.groups = {.count = 4, .chosen = 2, .score = group_scoring::sum_of_two_largest};
  scores_on_device device(of);
  std::mt19937_64 random = tmap::testing::run_random(31);
  // Biases of different size decide between the groups, logits within them.
  std::vector<float> bias;
  for (std::uint32_t e = 0; e < 32; ++e) bias.push_back(static_cast<float>((e / 8 * 5) % 4) * 3);
  device.set(grid_values(random, of.sizes.tokens * of.pitch()), bias);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(of.text());
  for (const std::int32_t id : device.results().ids().download("ids")) EXPECT_TRUE(id >= 16) << id;
}

TEST_F(moe_scores, nan_and_infinities) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::uint32_t experts = 40;
  const std::vector<float> special{nan, -nan, inf, -inf, 0.0f, -0.0f, 1.0f};
  for (const score_settings& with : scorings()) {
    const score_case of{{64, experts, 6}, float_type::f32, with};
    std::mt19937_64 random = tmap::testing::run_random(32);
    std::vector<float> values;
    for (std::uint64_t i = 0; i < of.sizes.tokens * experts; ++i) {
      const std::uint64_t token = i / experts;
      const bool all_alike = token < special.size();  // the first tokens have one value each
      values.push_back(all_alike ? special[token] : special[random() % special.size()]);
    }
    scores_on_device device(of);
    device.set(values, std::vector<float>(experts, 0));
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    TMAP_ASSERT_OK(device.enqueue(nullptr));
    device.expect("special values, " + of.text());
  }
}

TEST_F(moe_scores, ids_and_weights_stay_inside_if_nobody_wants_them) {
  const score_case of{{500, 64, 4}, float_type::bf16};
  std::mt19937_64 random = tmap::testing::run_random(33);
  scores_on_device device(of);
  device.set(grid_values(random, of.sizes.tokens * of.pitch()), std::vector<float>(64, 0));
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect("all results");
  const std::vector<float> want = device.results().weight_of_row().download("with ids and weights");
  device.results().reset();
  route_results places = device.results().places(false);
  places.ids = nullptr;
  places.weights = nullptr;
  TMAP_ASSERT_OK(route(device.problem(), places, device.results().reports().on(nullptr, device.scratch())));
  device.results().weight_of_row().expect(want, "without");
}

TEST_F(moe_scores, a_token_chooses_the_same_among_other_tokens) {
  std::mt19937_64 random = tmap::testing::run_random(34);
  const score_case many{{333, 128, 8}, float_type::f32};
  const std::vector<float> values = grid_values(random, many.sizes.tokens * many.pitch());
  const std::vector<float> bias(128, 0);
  scores_on_device all(many);
  all.set(values, bias);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(all.enqueue(nullptr));
  const std::vector<float> weights = all.results().weights().download("all");
  for (const std::size_t token : {std::size_t{0}, std::size_t{100}, std::size_t{332}}) {
    scores_on_device one({{1, 128, 8}, float_type::f32});
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(token * 128);
    one.set({at, at + 128}, bias);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    TMAP_ASSERT_OK(one.enqueue(nullptr));
    const auto first = weights.begin() + static_cast<std::ptrdiff_t>(token * 8);
    one.results().weights().expect({first, first + 8}, "token " + std::to_string(token));
  }
}

TEST_F(moe_scores, a_graph_replays_with_other_logits) {
  const score_case of{{900, 96, 4, 8}, float_type::bf16, {.renormalise = true}};
  scores_on_device device(of);
  const recorded_call graph([&](cudaStream_t stream) { return device.enqueue(stream); });
  std::mt19937_64 random = tmap::testing::run_random(35);
  for (int i = 0; i < 20; ++i) {
    device.set(grid_values(random, of.sizes.tokens * of.pitch()), std::vector<float>(96, 0));
    graph.replay();
    device.expect("replay " + std::to_string(i));
  }
}

}  // namespace
}  // namespace tmap::moe::testing
