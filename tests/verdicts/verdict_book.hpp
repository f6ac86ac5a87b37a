// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_status.hpp>
#include <tmap/rule.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace tmap::testing {

/// Returns the names of the rules in a verdict, as "T05 T34"; "none", or "empty" for a map without
/// elements.
std::string rule_names(std::uint64_t verdict);

/// Returns the errors that the driver accepts according to the rule table. Only they may make its
/// verdict differ from ours.
rule_set rules_of_ours_alone();

/// Returns whether the driver's verdict equals ours or differs as the rule table states: it accepts
/// a spec that breaks only rules of ours.
bool is_expected(std::uint64_t verdict, bool driver_refuses);

/// Counts verdicts and the driver's deviations.
class verdict_book {
 public:
  void add(std::uint64_t verdict);
  /// Adds a verdict and the driver's. Returns `is_expected`.
  bool add(std::uint64_t verdict, bool driver_refuses);
  void add(const verdict_book& other);

  std::uint64_t judged() const { return judged_; }
  std::uint64_t bad() const { return bad_; }
  std::uint64_t empty() const { return empty_; }
  std::uint64_t refused() const { return bad_ + empty_; }
  /// Returns how many broke this rule and no other.
  std::uint64_t alone(rule id) const { return alone_[static_cast<std::uint32_t>(id)]; }
  std::uint64_t broken_alone() const;
  std::uint64_t driver_asked() const { return driver_asked_; }
  std::uint64_t driver_refused() const { return driver_refused_; }
  /// Returns the specs that we refuse and the driver accepts, counted by our verdict.
  const std::map<std::uint64_t, std::uint64_t>& deviations() const { return deviations_; }

  /// Returns a table of all counts, with the rule table's reason for each deviation.
  std::string report(const std::string& title) const;

 private:
  std::string driver_report() const;

  std::uint64_t judged_{};
  std::uint64_t bad_{};
  std::uint64_t empty_{};
  std::uint64_t alone_[rule_count]{};
  std::uint64_t driver_asked_{};
  std::uint64_t driver_refused_{};
  std::map<std::uint64_t, std::uint64_t> deviations_;
};

}  // namespace tmap::testing
