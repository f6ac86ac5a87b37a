// SPDX-License-Identifier: Apache-2.0
// Runs a layer of experts that are spread over several ranks: GPUs, or virtual ranks on one GPU.
// Each rank routes its own tokens, sends them to the ranks of their experts, runs its experts, and
// sends sums home. One CUDA graph for each rank records all of it. The program replays the graphs
// with other tokens and routes, and compares every bit with `tmap::moe::layer` on one GPU.
#include <CLI/CLI.hpp>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "apps/samples/expert_parallel/check.hpp"
#include "apps/samples/expert_parallel/one_gpu.hpp"
#include "apps/samples/expert_parallel/ranks.hpp"
#include "apps/samples/moe_layer/inputs.hpp"
#include "apps/support/command_line.hpp"
#include "apps/support/device.hpp"

namespace {

using namespace experts;

std::vector<float> random_numbers(std::uint64_t count, double deviation, std::mt19937_64& random) {
  std::normal_distribution<float> draw(0, static_cast<float>(deviation));
  std::vector<float> made(count);
  for (float& each : made) each = draw(random);
  return made;
}

/// Cuts numbers to bf16.
bf16_values as_bf16(const std::vector<float>& numbers) {
  bf16_values made;
  made.reserve(numbers.size());
  for (const float each : numbers) made.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(each) >> 16));
  return made;
}

/// Draws matrices [lines, columns] in the type of the products.
matrices random_matrices(const layer_sizes& sizes, std::uint64_t lines, std::uint64_t columns,
                         std::mt19937_64& random) {
  const double deviation = 1 / std::sqrt(static_cast<double>(columns));
  const std::vector<float> numbers = random_numbers(sizes.experts * lines * columns, deviation, random);
  if (sizes.has_8_bits) {
    moe::scaled_matrices rounded = moe::as_e4m3(numbers, lines, columns);
    return {std::move(rounded.values), std::move(rounded.scales)};
  }
  const bf16_values rounded = as_bf16(numbers);
  matrices made{std::vector<unsigned char>(rounded.size() * sizeof(std::uint16_t)), {}};
  std::memcpy(made.values.data(), rounded.data(), made.values.size());
  return made;
}

layer_weights random_weights(const layer_sizes& sizes) {
  std::mt19937_64 random(1);
  return {random_matrices(sizes, std::uint64_t{2} * sizes.hidden, sizes.width, random),
          random_matrices(sizes, sizes.width, sizes.hidden, random)};
}

/// Draws tokens and logits. Some experts are chosen more often than others, in each replay others.
layer_inputs random_inputs(const layer_sizes& sizes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  layer_inputs made{as_bf16(random_numbers(sizes.all_tokens() * sizes.width, 1, random)), {}};
  std::normal_distribution<float> draw;
  std::vector<float> favour(sizes.experts);
  for (float& each : favour) each = draw(random);
  for (std::uint64_t i = 0; i < sizes.all_tokens() * sizes.experts; ++i) {
    made.logits.push_back(draw(random) + favour[i % sizes.experts]);
  }
  return made;
}

/// Replays once, and prints a line. Returns whether all is right.
bool run_once(const layer_sizes& sizes, const layer_weights& weights,
              const std::vector<std::unique_ptr<rank_layer>>& ranks, int replay) {
  const layer_inputs inputs = random_inputs(sizes, static_cast<std::uint64_t>(replay) + 1000);
  for (const auto& each : ranks) each->set_inputs(inputs);
  for (const auto& each : ranks) each->replay();
  std::vector<rank_results> results;
  for (const auto& each : ranks) {
    if (const auto ended = each->outcome(); !ended) {
      std::printf("replay %d: wrong: %s\n", replay, to_string(ended.error()).c_str());
      return false;
    }
    results.push_back(each->results());
  }
  const comparison found = compare(sizes, run_on_one_gpu(sizes, weights, inputs), results);
  std::printf("replay %d: %llu rows of experts equal; %llu tokens as on one GPU, %llu rounded once more\n", replay,
              static_cast<unsigned long long>(found.rows), static_cast<unsigned long long>(found.tokens),
              static_cast<unsigned long long>(found.other_bits));
  if (!found.fault.empty()) std::printf("  wrong: %s\n", found.fault.c_str());
  return found.fault.empty();
}

/// Prints how long replays take that follow each other, and the parts of the last one.
void measure(const std::vector<std::unique_ptr<rank_layer>>& ranks, int replays) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  for (int i = 0; i < replays; ++i) {
    for (const auto& each : ranks) each->replay();
  }
  for (const auto& each : ranks) tmap::apps::require(each->outcome());
  const std::chrono::duration<double, std::micro> took = clock::now() - begin;
  std::printf("%.1f us a replay, of %d\n", took.count() / replays, replays);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<float> times = ranks[rank]->times();
    std::printf("rank %zu: route %.1f, dispatch %.1f, products %.1f, combine %.1f us\n", rank, times[0], times[1],
                times[2], times[3]);
  }
}

int run(const layer_sizes& sizes, int replays, int measured) {
  const layer_weights weights = random_weights(sizes);
  std::vector<tmap::apps::device_array<unsigned char>> memory;
  memory.reserve(sizes.ranks);
  const auto ranks = make_ranks(sizes, weights, memory);
  std::printf("%u %sranks with %u tokens of %u values each, %u experts, each token to %u of them\n", sizes.ranks,
              sizes.are_virtual ? "virtual " : "", sizes.tokens, sizes.width, sizes.experts, sizes.k);
  int wrong = 0;
  for (int replay = 0; replay < replays; ++replay) wrong += !run_once(sizes, weights, ranks, replay);
  if (wrong == 0 && measured > 0) measure(ranks, measured);
  std::printf("%d replays of a graph for each rank: %d wrong\n", replays, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs a layer of experts over several ranks, and compares it with one GPU bit for bit",
               "expert_parallel"};
  layer_sizes sizes;
  int replays = 5, measured = 0;
  app.add_option("--ranks", sizes.ranks, "Ranks")->check(CLI::Range(1u, 32u))->capture_default_str();
  app.add_option("--tokens", sizes.tokens, "Tokens of each rank")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--experts", sizes.experts, "Experts, a multiple of the ranks")->capture_default_str();
  app.add_option("--choices", sizes.k, "Experts of each token")->capture_default_str();
  app.add_option("--width", sizes.width, "Values of a token, a multiple of 8")->capture_default_str();
  app.add_option("--hidden", sizes.hidden, "Hidden values of an expert, a multiple of 16")->capture_default_str();
  app.add_option("--blocks", sizes.blocks, "Blocks that move rows, of each rank")->capture_default_str();
  app.add_option("--replays", replays, "Runs that are compared, each with other tokens")->capture_default_str();
  app.add_option("--measure", measured, "More replays, which are timed")->capture_default_str();
  std::string weights = "bf16";
  app.add_option("--weights", weights, "Type of the products; f8 needs multiples of 128 values")
      ->check(CLI::IsMember({"bf16", "f8"}))
      ->capture_default_str();
  bool has_gpus = false;
  app.add_flag("--rows", sizes.returns_rows, "Results come home one by one, and have the bits of one GPU");
  app.add_flag("--gpus", has_gpus, "A GPU for each rank, instead of virtual ranks on the first one");
  if (const auto ended = tmap::apps::parse_command_line(app, argc, argv)) return *ended;
  sizes.are_virtual = !has_gpus;
  sizes.is_timed = measured > 0;
  sizes.has_8_bits = weights == "f8";
  if (!tmap::apps::has_hopper()) return tmap::apps::lack_of_hopper("expert_parallel");
  return run(sizes, replays, measured);
}
