// SPDX-License-Identifier: Apache-2.0
#pragma once

// The command lines of the samples, the benchmarks and the demo.

#include <optional>

namespace CLI {
class App;
}

namespace tmap::apps {

/// Parses the options of the program that `app` names. Returns the exit code if the program ends
/// here: 0 after `--help`, 2 after a wrong option, which it names on standard error.
[[nodiscard]] std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

/// Does the same for a program without options.
[[nodiscard]] std::optional<int> parse_command_line(const char* program, const char* purpose, int argc, char** argv);

}  // namespace tmap::apps
