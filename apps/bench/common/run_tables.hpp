// SPDX-License-Identifier: Apache-2.0
#pragma once

// What programs that print tables share: the command line, the GPU they need, and the tables that
// were asked for.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tmap::apps::bench {

/// A table and what prints it; `Meter` is what it measures with.
template <class Meter>
struct named_table {
  const char* name;
  void (*print)(const Meter& meter);
};

/// What `--help` says.
struct program_text {
  const char* program;
  const char* purpose;
  const char* choice;  ///< of `--table`
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

  /// Calls `measure` once options are read and a GPU of compute capability 9 is awake; what it
  /// throws is printed. The exit status: 1 for no such GPU or an exception, 2 for a wrong option.
  int run(int argc, char** argv, const std::function<void()>& measure);

  /// Prints the wanted ones, in the order of `tables`.
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
