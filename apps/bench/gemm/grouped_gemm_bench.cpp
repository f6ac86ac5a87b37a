// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/bench/gemm/epilogues.hpp"
#include "apps/bench/gemm/measure.hpp"
#include "apps/bench/gemm/shapes.hpp"
#include "apps/bench/gemm/subject.hpp"
#include "apps/support/command_line.hpp"
#include "apps/support/device.hpp"
#include "apps/support/watchdog.hpp"

// Measures grouped products against cuBLAS. Prints a table to standard output and writes curves as
// JSON.

namespace {

using namespace tmap;
using namespace tmap::apps;
using namespace tmap::apps::bench;

struct settings {
  std::string json;
  bool shapes{};
  bool epilogues{};
  bool no_curves{};
  bool no_plans{};
  int seconds{240};
};

void print_sizes(const row_shape& shape) {
  std::printf("%s:", shape.name().c_str());
  for (const std::int64_t size : drawn_sizes(shape)) std::printf(" %lld", static_cast<long long>(size));
  std::printf("\n\n");
}

void print_all_sizes() {
  std::printf("Rows of each group:\n\n");
  for (const row_shape& shape : table_shapes()) print_sizes(shape);
  std::printf("gradient of weights, ");
  print_sizes(weight_shape());
  std::printf("by pointers (m n k):");
  for (const auto& [m, n, k] : drawn_pointer_sizes()) {
    std::printf(" (%lld %lld %lld)", static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k));
  }
  std::printf("\n\n");
}

/// Returns the TFLOP/s of the dense product that all others are compared with.
double dense_teraflops(const timer& time, operand_memory& memory) {
  if (!cublas_peer::exists()) return 0;
  constexpr std::int64_t side = 8192;
  subject dense = memory.pointers({{side, side, side}});
  const cublas_peer peer(dense.peer_products(), false);
  const double microseconds = sustained_microseconds(time, [&](cudaStream_t stream) { peer.enqueue_loop(stream); });
  return dense.operations / microseconds * 1e-6;
}

void print_header() {
  std::printf("TFLOP/s over valid rows, random normal inputs.\n\n");
  std::printf(
      "| groups, rows, N, K | goal | tmap | of dense | best plan | its TFLOP/s | cuBLAS loop | cuBLAS grouped | "
      "times the better | set-up and launches, us | of the time | error, of the allowed |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
}

std::string number(double value, int digits = 0) {
  if (value == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

void print_line(const line& of, double dense) {
  const double peer = std::max(of.teraflops(of.loop), of.teraflops(of.grouped));
  const double chosen = of.teraflops(of.chosen);
  const plan_time* const best = of.best_plan();
  std::printf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.2g |\n", of.name.c_str(),
              number(of.goal).c_str(), number(chosen).c_str(), number(dense == 0 ? 0 : chosen / dense, 2).c_str(),
              best == nullptr ? "-" : best->plan.c_str(),
              number(best == nullptr ? 0 : of.teraflops(best->microseconds)).c_str(),
              number(of.teraflops(of.loop)).c_str(), number(of.teraflops(of.grouped)).c_str(),
              number(peer == 0 ? 0 : chosen / peer, 2).c_str(), number(of.set_up, 1).c_str(),
              number(of.chosen == 0 ? 0 : of.set_up / of.chosen, 3).c_str(), of.worst_error);
  std::fflush(stdout);
}

nlohmann::json as_json(const line& of) {
  nlohmann::json made{{"name", of.name},
                      {"goal", of.goal},
                      {"operations", of.operations},
                      {"chosen_us", of.chosen},
                      {"set_up_us", of.set_up},
                      {"cublas_loop_us", of.loop},
                      {"cublas_grouped_us", of.grouped},
                      {"plans", nlohmann::json::object()}};
  for (const plan_time& plan : of.plans) made["plans"][plan.plan] = plan.microseconds;
  return made;
}

class bench {
 public:
  explicit bench(const settings& with) : with_(with) {
    wake_device();
    dense_ = dense_teraflops(time_, memory_);
    std::printf("Dense 8192 x 8192 x 8192, cuBLAS, bf16: %s TFLOP/s\n\n", number(dense_).c_str());
    all_["dense"] = dense_;
  }

  void table() {
    print_header();
    for (const row_shape& shape : table_shapes()) add(memory_.rows(shape, drawn_sizes(shape)));
    add(memory_.pointers(drawn_pointer_sizes()));
    add(memory_.weights(weight_shape(), drawn_sizes(weight_shape())));
    memory_.fill(gemm::operand_type::f8_e4m3);
    for (const row_shape& shape : table_shapes()) {
      if (!shape.in_8_bits) continue;
      for (const bool is_fast : {false, true}) add(memory_.rows(shape, drawn_sizes(shape), is_fast));
    }
    memory_.fill(gemm::operand_type::bf16);
  }

  /// Splits the same work into more and more groups: time(groups) - time(1) is the cost of changing
  /// groups.
  void curve_of_groups() {
    for (std::uint32_t groups = 1; groups <= 1024; groups *= 2) {
      add_point("groups", groups, {groups, 65536, 2048, 512, row_weights::equal, 0, false});
    }
  }
  void curve_of_k() {
    for (std::uint64_t k = 128; k <= 8192; k *= 2) {
      add_point("k", k, {32, 8192, 4096, k, row_weights::equal, 0, false});
    }
  }

  int finish() const {
    if (!with_.json.empty()) std::ofstream(with_.json) << all_.dump(1) << "\n";
    if (judging_.wrong() == 0) return 0;
    std::printf("\n%d wrong results\n", judging_.wrong());
    return 1;
  }

 private:
  void add(const subject& of) {
    const auto plans = with_.no_plans ? how_thorough::chosen_plan : how_thorough::all_plans;
    const line made = measured(of, time_, judging_, plans);
    print_line(made, dense_);
    all_["table"].push_back(as_json(made));
  }

  void add_point(const char* curve, std::uint64_t at, const row_shape& shape) {
    const subject of = memory_.rows(shape, drawn_sizes(shape));
    const line made = measured(of, time_, judging_, how_thorough::chosen_plan);
    std::printf("%s %llu: %.1f us, %.0f TFLOP/s\n", curve, static_cast<unsigned long long>(at), made.chosen,
                made.teraflops(made.chosen));
    std::fflush(stdout);
    all_[curve].push_back({{"at", at}, {"us", made.chosen}, {"teraflops", made.teraflops(made.chosen)}});
  }

  settings with_;
  timer time_;
  operand_memory memory_;
  judge judging_;
  double dense_{};
  nlohmann::json all_;
};

int run(const settings& with) {
  if (with.shapes) {
    std::cout << shapes_as_json().dump() << "\n";
    return 0;
  }
  if (!has_hopper()) return lack_of_hopper("grouped_gemm_bench");
  end_after(with.seconds, "grouped_gemm_bench");
  print_device();
  if (with.epilogues) {
    wake_device();
    operand_memory memory;
    print_epilogues(timer{}, memory);
    return 0;
  }
  if (!cublas_peer::exists()) std::printf("built without cuBLAS: no peers\n");
  print_all_sizes();
  bench all(with);
  all.table();
  if (!with.no_curves) {
    std::printf("\n");
    all.curve_of_groups();
    all.curve_of_k();
  }
  return all.finish();
}

}  // namespace

int main(int count, char** arguments) {
  settings with;
  CLI::App app{"Compares grouped matrix products with cuBLAS", "grouped_gemm_bench"};
  app.add_option("--json", with.json, "Write every figure to this file");
  app.add_option("--seconds", with.seconds, "Stop after this many seconds");
  app.add_flag("--no-curves", with.no_curves, "Measure the table only");
  app.add_flag("--no-plans", with.no_plans, "Measure only the plans that the library chooses, without peers");
  app.add_flag("--epilogues", with.epilogues, "Compare other kinds of results with plain ones, and nothing else");
  app.add_flag("--shapes", with.shapes, "Print all sizes as JSON for other programs, and measure nothing");
  if (const auto ended = parse_command_line(app, count, arguments)) return *ended;
  return run(with);
}
