// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/common/table.hpp"

#include <fmt/format.h>

#include <utility>

#include "apps/support/require.hpp"

namespace tmap::apps::bench {
namespace {

void print_row(const std::vector<std::string>& cells) {
  fmt::print("| {} |\n", fmt::join(cells, " | "));
}

}  // namespace

table::table(std::string title, std::vector<std::string> columns) : title_{std::move(title)} {
  rows_.push_back(std::move(columns));
}

void table::add(std::vector<std::string> cells) {
  require(cells.size() == rows_.front().size());
  rows_.push_back(std::move(cells));
}

void table::print() const {
  fmt::print("\n{}\n\n", title_);
  print_row(rows_.front());
  print_row(std::vector<std::string>(rows_.front().size(), "---"));
  for (std::size_t i = 1; i < rows_.size(); ++i) print_row(rows_[i]);
  std::fflush(stdout);
}

std::string text(double value, int decimals) {
  return fmt::format("{:.{}f}", value, decimals);
}

std::string signed_text(double value, int decimals) {
  return fmt::format("{:+.{}f}", value, decimals);
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t left = digits.size(); left > 3; left -= 3) digits.insert(left - 3, 1, ',');
  return digits;
}

std::string rate_text(std::uint64_t count, double microseconds) {
  const double millions = static_cast<double>(count) / microseconds;
  return fmt::format("{:.{}f} M/s", millions, millions < 1 ? 3 : millions < 100 ? 1 : 0);
}

}  // namespace tmap::apps::bench
