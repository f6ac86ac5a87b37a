// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "apps/tmap/commands.hpp"

namespace tmap::tool {
namespace {

/// The benchmark is a program of its own: it needs cuBLAS, without which the tool must start.
[[noreturn]] void become_gemm_bench(std::vector<std::string> options) {
  const std::string program = TMAP_GEMM_BENCH;
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (std::string& option : options) arguments.push_back(option.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw std::runtime_error{program + " cannot be run: is it built (TMAP_BUILD_BENCHMARKS)?"};
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure on the GPU of this machine");
  bench->require_subcommand(1);
  CLI::App* gemm = bench->add_subcommand("gemm", "Grouped matrix products beside cuBLAS: runs grouped_gemm_bench");
  gemm->set_help_flag();  // its options and its help are the benchmark's
  gemm->prefix_command();
  gemm->callback([gemm] { become_gemm_bench(gemm->remaining()); });
}

}  // namespace tmap::tool
