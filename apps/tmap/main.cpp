// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"

namespace {

using namespace tmap::tool;

/// Help and version come as exceptions too, with exit code 0.
int answer_to(const CLI::App& app, const CLI::ParseError& e) {
  if (e.get_exit_code() == 0) return app.exit(e);
  fmt::print(stderr, "tmap: {}\n", e.what());
  return exit_trouble;
}

int run(int argc, char** argv) {
  CLI::App app{"tmap: CUDA tensor maps, made on the GPU, checked, read and compared anywhere", "tmap"};
  app.set_version_flag("--version", "tmap " TMAP_VERSION, "Show the version and leave");
  app.require_subcommand(0, 1);
  app.footer(
      "Exit codes: 0 all is well; 1 the answer is no (a rule is broken, maps differ, something does not work);\n"
      "2 the question could not be asked (unknown flag, unreadable or wrong input). For pad, a bad input is a 1: the\n"
      "command line was right, and with --keep-going the other inputs have their results. bench answers as the\n"
      "program that it runs: with 1 where there is no Hopper GPU.");
  int exit_code = exit_success;
  add_inspect_command(app, exit_code);
  add_explain_command(app, exit_code);
  add_diff_command(app, exit_code);
  add_doctor_command(app, exit_code);
  add_pad_command(app, exit_code);
  add_bench_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return answer_to(app, e);
  }
  if (app.get_subcommands().empty()) {
    fmt::print(stderr, "tmap: say what to do: inspect, explain, diff, doctor, pad or bench (tmap --help tells more)\n");
    return exit_trouble;
  }
  // A flush in the middle may have failed already, and left nothing for this one to do.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw std::runtime_error{"standard output cannot be written"};
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tmap: %s\n", e.what());
    return exit_trouble;
  }
}
