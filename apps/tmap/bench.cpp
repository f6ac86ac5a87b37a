// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/tmap/commands.hpp"
#include "apps/tmap/help.hpp"

namespace tmap::tool {
namespace {

namespace fs = std::filesystem;

/// The benchmark may lie here, seen from the folder of the tool: in the same one, where it is
/// installed, where both are built.
constexpr const char* places[] = {"grouped_gemm_bench", TMAP_LIBEXEC_FROM_BIN "/grouped_gemm_bench",
                                  "../bench/gemm/grouped_gemm_bench"};

/// No path of the machine that built the tool: an installed one may be anywhere.
std::string find_gemm_bench() {
  std::error_code fault;
  const fs::path folder = fs::read_symlink("/proc/self/exe", fault).parent_path();
  for (const char* place : places) {
    const fs::path program = (folder / place).lexically_normal();
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  throw std::runtime_error{fmt::format(
      "bench gemm: there is no grouped_gemm_bench next to {} or in {}; build tmap with -DTMAP_BUILD_BENCHMARKS=ON and "
      "run cmake --install BUILD --component tmap_benchmarks",
      (folder / "tmap").string(), (folder / TMAP_LIBEXEC_FROM_BIN).lexically_normal().string())};
}

/// The benchmark is a program of its own: it needs cuBLAS, without which the tool must start.
[[noreturn]] void become_gemm_bench(std::vector<std::string> options) {
  std::string program = find_gemm_bench();
  std::vector<char*> arguments{program.data()};
  for (std::string& option : options) arguments.push_back(option.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw std::runtime_error{program + " cannot be run"};
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure on the GPU of this machine");
  bench->require_subcommand(1);
  add_ending(*bench,
             "Exit codes: 0 all is well; 1 there is no Hopper GPU, or a result is wrong; 2 the command line is wrong.",
             {{"the shapes that it measures", "tmap bench gemm --shapes"}, {"its options", "tmap bench gemm --help"}});
  CLI::App* gemm =
      bench->add_subcommand("gemm", "Grouped matrix products compared with cuBLAS: runs grouped_gemm_bench");
  gemm->set_help_flag();  // its options and its help are the benchmark's
  gemm->prefix_command();
  gemm->callback([gemm] { become_gemm_bench(gemm->remaining()); });
}

}  // namespace tmap::tool
