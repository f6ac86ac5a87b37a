// SPDX-License-Identifier: Apache-2.0
#include "apps/support/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

namespace tmap::apps {

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    fmt::print(stderr, "{}: {} ({} --help shows more)\n", app.get_name(), e.what(), app.get_name());
    return 2;
  }
  return std::nullopt;
}

std::optional<int> parse_command_line(const char* program, const char* purpose, int argc, char** argv) {
  CLI::App app{purpose, program};
  return parse_command_line(app, argc, argv);
}

}  // namespace tmap::apps
