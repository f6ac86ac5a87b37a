// SPDX-License-Identifier: Apache-2.0
// Runs a small mixture-of-experts layer entirely on the GPU. A router scores the experts for each
// token. `tmap::moe::layer` does the rest: it sends each token to two experts, runs two grouped
// products with SwiGLU between them, and adds up the results of each token. One CUDA graph records
// both. The program replays it with new tokens in the same memory, and compares each
// run with plain loops on the host.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/samples/moe_layer/layer.hpp"
#include "apps/samples/moe_layer/plain.hpp"
#include "apps/support/command_line.hpp"
#include "apps/support/device.hpp"

namespace {

using namespace moe;
using tmap::failure;
using tmap::result;

/// Replays once with new tokens, and prints a line about the result.
result<bool> run_once(const layer& of, const layer_graph& graph, const layer_weights& weights, int replay) {
  const std::vector<float> tokens = random_tokens(of.sizes(), static_cast<std::uint64_t>(replay) + 1000);
  result<void> done = of.set_tokens(tokens);
  if (done) done = of.poison();
  if (done) done = graph.replay();
  if (!done) return failure(done.error());
  const auto got = of.results();
  if (!got) return failure(got.error());
  const auto header = of.header();
  if (!header) return failure(header.error());
  const auto statuses = of.statuses();
  if (!statuses) return failure(statuses.error());

  const comparison found = compare(of.sizes(), weights, tokens, *got);
  std::printf("replay %d: tokens of each expert", replay);
  for (const std::int32_t size : got->sizes) std::printf(" %d", size);
  std::printf("; largest error %.2g, of the allowed at most %.2f\n", found.worst_error, found.worst);
  if (!found.fault.empty()) std::printf("  wrong: %s\n", found.fault.c_str());
  if (header->bad_count != 0) std::printf("  wrong: the layer refused %u choices\n", header->bad_count);
  const auto refused =
      std::count_if(statuses->begin(), statuses->end(), [](const auto& status) { return status.is_bad(); });
  if (refused != 0) std::printf("  wrong: products refused %lld experts\n", static_cast<long long>(refused));
  return found.fault.empty() && header->bad_count == 0 && refused == 0;
}

/// Returns the number of wrong replays.
result<int> run(const layer_sizes& sizes, int replays) {
  const auto made = layer::make(sizes);
  if (!made) return failure(made.error());
  const layer_weights weights = random_weights(sizes, 1);
  if (const auto set = made->set_weights(weights); !set) return failure(set.error());
  const auto graph = layer_graph::capture(*made);
  if (!graph) return failure(graph.error());
  std::printf("%u tokens of %u values, %u experts with %u hidden values, each token to %u of them\n", sizes.tokens,
              sizes.width, sizes.experts, sizes.hidden, choices);
  int wrong = 0;
  for (int replay = 0; replay < replays; ++replay) {
    const auto is_right = run_once(*made, *graph, weights, replay);
    if (!is_right) return failure(is_right.error());
    if (!*is_right) ++wrong;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs a mixture-of-experts layer as one CUDA graph, with new tokens each time, and checks it",
               "moe_layer"};
  layer_sizes sizes;
  int replays = 5;
  app.add_option("--tokens", sizes.tokens, "Tokens per run")->capture_default_str();
  app.add_option("--experts", sizes.experts, "Experts, at least 2")->capture_default_str();
  app.add_option("--width", sizes.width, "Values per token, a multiple of 8")->capture_default_str();
  app.add_option("--hidden", sizes.hidden, "Hidden values per expert, a multiple of 16")->capture_default_str();
  std::string weights = "bf16";
  app.add_option("--weights", weights, "Type of weights; with f8, --hidden is a multiple of 128")
      ->check(CLI::IsMember({"bf16", "f8"}))
      ->capture_default_str();
  app.add_option("--replays", replays, "Number of runs, each with new tokens")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  if (const auto ended = tmap::apps::parse_command_line(app, argc, argv)) return *ended;
  sizes.has_8_bits = weights == "f8";
  if (!tmap::apps::has_hopper()) return tmap::apps::lack_of_hopper("moe_layer");
  const auto wrong = run(sizes, replays);
  if (!wrong) {
    std::fprintf(stderr, "moe_layer: %s\n", to_string(wrong.error()).c_str());
    return 1;
  }
  std::printf("%d replays of one graph: %d wrong\n", replays, *wrong);
  return *wrong == 0 ? 0 : 1;
}
