// SPDX-License-Identifier: Apache-2.0
#pragma once

// A table of a report, in Markdown.

#include <cstdint>
#include <string>
#include <vector>

namespace tmap::apps::bench {

class table {
 public:
  table(std::string title, std::vector<std::string> columns);

  /// As many cells as there are columns.
  void add(std::vector<std::string> cells);
  /// To standard output, title first.
  void print() const;

 private:
  std::string title_;
  std::vector<std::vector<std::string>> rows_;
};

/// Fixed point.
std::string text(double value, int decimals = 2);
/// With its sign: a difference.
std::string signed_text(double value, int decimals = 2);
/// Thousands separated by commas.
std::string count_text(std::uint64_t count);
/// `count` maps made in so many microseconds, in millions a second.
std::string rate_text(std::uint64_t count, double microseconds);

}  // namespace tmap::apps::bench
