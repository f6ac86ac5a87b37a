// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "apps/support/terminal.hpp"
#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/help.hpp"

namespace {

using namespace tmap::tool;

/// A flush in the middle may have failed already, and left nothing for this one to do.
void finish_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw std::runtime_error{"standard output cannot be written"};
}

/// Help and version come as exceptions too, with exit code 0.
int exit_code_of(const CLI::App& app, const CLI::ParseError& e) {
  if (e.get_exit_code() == 0) {
    app.exit(e);
    finish_output();
    return exit_success;
  }
  print_error(complaint_of(app, e));
  return exit_trouble;
}

void add_commands(CLI::App& app, int& exit_code) {
  add_inspect_command(app, exit_code);
  add_explain_command(app, exit_code);
  add_show_command(app, exit_code);
  add_diff_command(app, exit_code);
  add_doctor_command(app, exit_code);
  add_pad_command(app, exit_code);
  add_bench_command(app);
  add_generate_command(app, exit_code);
  add_help_command(app, exit_code);
  add_colour_option(app);
}

int run(int argc, char** argv) {
  CLI::App app{"Checks, prints, compares and draws CUDA tensor maps, and pads files into dense batches", "tmap"};
  app.set_version_flag("-v,--version", "tmap " TMAP_VERSION, "Print the version and exit");
  app.require_subcommand(0, 1);
  int exit_code = exit_success;
  add_commands(app, exit_code);
  add_ending(
      app,
      "Exit codes: 0 all is well; 1 a rule is broken, maps differ, an input of pad is bad, or something does not "
      "work; 2 the command could not run: an unknown option, unreadable or wrong input.",
      {{"what is wrong with a spec", "tmap explain --type f16 --dims 4100,4096 --box 64,64"},
       {"the fields of a map", "tmap inspect map.bin"},
       {"more about a command", "tmap help explain"}});
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return exit_code_of(app, e);
  }
  if (app.get_subcommands().empty()) {
    print_error(fmt::format("say what to do: {} (tmap --help shows more)", list_of_commands(app)));
    return exit_trouble;
  }
  finish_output();
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
