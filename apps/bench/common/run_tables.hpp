// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared code of programs that print tables: it parses the command line, waits for a GPU and prints
// the tables that the caller chose.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tmap::apps::bench {

/// Names a table and the function that prints it. `Meter` is what the function measures with.
template <class Meter>
struct named_table {
  const char* name;
  void (*print)(const Meter& meter);
};

/// Holds the text of `--help`.
struct program_text {
  const char* program;
  const char* purpose;
  const char* choice;  ///< help of `--table`
};

class table_program {
 public:
  template <class Meter, std::size_t Count>
  table_program(const program_text& text, const named_table<Meter> (&tables)[Count])
      : app_(text.purpose, text.program) {
    for (const named_table<Meter>& table : tables) wanted_.emplace_back(table.name);
    offer_choice(text.choice);
  }

  CLI::App& options() { return app_; }

  /// Parses the options, checks for a GPU of compute capability 9 and calls `measure`. Prints an
  /// exception that `measure` throws. Returns the exit status: 1 without such a GPU or after an
  /// exception, 2 for a wrong option.
  int run(int argc, char** argv, const std::function<void()>& measure);

  /// Prints the chosen tables in the order of `tables`.
  template <class Meter, std::size_t Count>
  void print(const named_table<Meter> (&tables)[Count], const Meter& meter) const {
    for (const named_table<Meter>& table : tables) {
      if (std::find(wanted_.begin(), wanted_.end(), table.name) != wanted_.end()) table.print(meter);
    }
  }

 private:
  void offer_choice(const char* help);

  CLI::App app_;
  std::vector<std::string> wanted_;
};

}  // namespace tmap::apps::bench
