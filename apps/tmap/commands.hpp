// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

// The subcommands of `tmap`. Each call adds one to `app`; when that subcommand was chosen and has
// run, `exit_code` holds its answer. Both arguments must outlive the parse.

namespace tmap::tool {

void add_inspect_command(CLI::App& app, int& exit_code);
void add_explain_command(CLI::App& app, int& exit_code);
void add_diff_command(CLI::App& app, int& exit_code);
void add_doctor_command(CLI::App& app, int& exit_code);
void add_pad_command(CLI::App& app, int& exit_code);
/// Of the program that it runs: this process becomes that one.
void add_bench_command(CLI::App& app);

}  // namespace tmap::tool
