// SPDX-License-Identifier: Apache-2.0
#include "verdicts/verdict_book.hpp"

#include <tmap/rule_info.hpp>

#include <fmt/format.h>

#include <bit>

namespace tmap::testing {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// Returns the rules of a verdict with their sentences, one per line.
std::string reasons(std::uint64_t verdict) {
  std::string text;
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    const rule_info& row = info(static_cast<rule>(i));
    if ((verdict >> i & 1) != 0) text += fmt::format("    {}: {}\n", row.name, row.sentence);
  }
  return text;
}

}  // namespace

std::string rule_names(std::uint64_t verdict) {
  std::string text;
  if ((verdict & map_status::empty_bit) != 0) text = "empty";
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    if ((verdict >> i & 1) != 0) text += fmt::format("{}{}", text.empty() ? "" : " ", info(static_cast<rule>(i)).name);
  }
  return text.empty() ? "none" : text;
}

rule_set rules_of_ours_alone() {
  rule_set rules;
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    const rule_info& row = info(static_cast<rule>(i));
    if (row.level == severity::error && row.stage != rule_stage::use && !row.driver_refuses) rules.insert(row.id);
  }
  return rules;
}

bool is_expected(std::uint64_t verdict, bool driver_refuses) {
  static const std::uint64_t ours_alone = rules_of_ours_alone().bits;
  const bool has_rule_of_both = (verdict & ~ours_alone) != 0;
  return driver_refuses == has_rule_of_both;
}

void verdict_book::add(std::uint64_t verdict) {
  ++judged_;
  if (verdict == map_status::empty_bit) {
    ++empty_;
  } else if (verdict != 0) {
    ++bad_;
    if (std::has_single_bit(verdict)) ++alone_[std::countr_zero(verdict)];
  }
}

bool verdict_book::add(std::uint64_t verdict, bool driver_refuses) {
  add(verdict);
  ++driver_asked_;
  driver_refused_ += driver_refuses;
  if (verdict != 0 && !driver_refuses) ++deviations_[verdict];
  return is_expected(verdict, driver_refuses);
}

void verdict_book::add(const verdict_book& other) {
  judged_ += other.judged_;
  bad_ += other.bad_;
  empty_ += other.empty_;
  for (std::uint32_t i = 0; i < rule_count; ++i) alone_[i] += other.alone_[i];
  driver_asked_ += other.driver_asked_;
  driver_refused_ += other.driver_refused_;
  for (const auto& [verdict, count] : other.deviations_) deviations_[verdict] += count;
}

std::uint64_t verdict_book::broken_alone() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : alone_) sum += count;
  return sum;
}

std::string verdict_book::report(const std::string& title) const {
  std::string text =
      fmt::format("{}: {} judged; {:.1f} % bad ({:.1f} % break one rule alone), {:.1f} % empty\n  broken alone:", title,
                  judged_, share(bad_, judged_), share(broken_alone(), judged_), share(empty_, judged_));
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    if (alone_[i] != 0) text += fmt::format(" {} {}", info(static_cast<rule>(i)).name, alone_[i]);
  }
  return text + '\n' + (driver_asked_ == 0 ? "" : driver_report());
}

std::string verdict_book::driver_report() const {
  std::string text = fmt::format("  the driver judged {} and refused {:.1f} %; it accepts, and we refuse:\n",
                                 driver_asked_, share(driver_refused_, driver_asked_));
  std::uint64_t seen = 0;
  for (const auto& [verdict, count] : deviations_) {
    text += fmt::format("    {:<20} {:>12}\n", rule_names(verdict), count);
    seen |= verdict;
  }
  return text + reasons(seen);
}

}  // namespace tmap::testing
