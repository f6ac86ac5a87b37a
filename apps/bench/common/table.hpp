// SPDX-License-Identifier: Apache-2.0
#pragma once

// A table in Markdown.

#include <cstdint>
#include <string>
#include <vector>

namespace tmap::apps::bench {

class table {
 public:
  table(std::string title, std::vector<std::string> columns);

  /// Appends a row. `cells` has one string per column.
  void add(std::vector<std::string> cells);
  /// Prints the title and the table to standard output.
  void print() const;

 private:
  std::string title_;
  std::vector<std::vector<std::string>> rows_;
};

/// Formats `value` in fixed point.
std::string text(double value, int decimals = 2);
/// Formats a difference with its sign.
std::string signed_text(double value, int decimals = 2);
/// Formats a count with commas between thousands.
std::string count_text(std::uint64_t count);
/// Formats the rate of `count` maps in `microseconds` as millions per second.
std::string rate_text(std::uint64_t count, double microseconds);

}  // namespace tmap::apps::bench
