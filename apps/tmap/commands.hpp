// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

// The subcommands of `tmap`. Each call adds one to `app`; when that subcommand was chosen and has
// run, `exit_code` holds its exit code. Both arguments must outlive the parse.

namespace tmap::tool {

void add_inspect_command(CLI::App& app, int& exit_code);
void add_explain_command(CLI::App& app, int& exit_code);
void add_show_command(CLI::App& app, int& exit_code);
void add_diff_command(CLI::App& app, int& exit_code);
void add_doctor_command(CLI::App& app, int& exit_code);
void add_pad_command(CLI::App& app, int& exit_code);
/// This process becomes the program that it runs, whose exit code it has.
void add_bench_command(CLI::App& app);

// Those about all others, which come last.

/// Prints the man page or a shell's completion.
void add_generate_command(CLI::App& app, int& exit_code);
/// `tmap help COMMAND` is `tmap COMMAND --help`.
void add_help_command(CLI::App& app, int& exit_code);
/// Gives `app` and every command the option --color.
void add_colour_option(CLI::App& app);

}  // namespace tmap::tool
