// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "peer/expert_windows.hpp"

// Defines the rows, results and sums of the model, and checks those that came.

namespace tmap::testing {

template <class Link>
class expert_values {
 public:
  expert_values(const experts_case& given, const expert_windows& in) : case_(given), in_(in) {}

  static std::uint32_t value(std::uint32_t call, std::uint32_t from, std::uint32_t token) {
    return ((call + 1) * 16 + from) * 64 + token + 1;
  }

  /// Returns what the rows of an expert hold, in their order.
  std::vector<std::uint32_t> values_of_expert(Link& link, std::uint32_t call, std::uint32_t expert) const {
    std::vector<std::uint32_t> values;
    for (std::uint32_t from = 0; from < case_.ranks; ++from) {
      for (std::uint32_t i = 0; i < case_.tokens * case_.k; ++i) {
        const bool is_its = chosen(call, from, i / case_.k, i % case_.k) == link.rank() * case_.experts + expert;
        if (is_its) values.push_back(value(call, from, i / case_.k));
      }
    }
    return values;
  }
  void check_rows(Link& link, std::uint32_t call) const {
    std::uint64_t at = 0;
    for (std::uint32_t expert = 0; expert < case_.experts; ++expert) {
      at = check_expert(link, call, expert, (at + case_.alignment - 1) / case_.alignment * case_.alignment);
    }
    link.expect(at <= case_.rows, "no row lies beyond the capacity");
    link.expect(link.load(link.rank(), in_.out + std::uint64_t{case_.rows} * case_.row_bytes) == 0,
                "nothing lies beyond the capacity");
  }

  /// Stands in for the experts: row times the number of its expert, and the call.
  void multiply(Link& link, std::uint32_t call) const {
    const std::uint32_t me = link.rank(), total = link.load(me, in_.at.total);
    for (std::uint32_t i = 0; i < total * case_.k; ++i) {
      const std::uint32_t place = link.load(me, word_at(in_.at.places, i));
      if (place >= case_.rows) continue;
      const std::uint32_t row = link.load(me, in_.out + std::uint64_t{place} * case_.row_bytes);
      link.store(me, in_.values + 16 * std::uint64_t{place}, row * (expert_of(link, i) + 1) + call);
    }
  }
  /// Expects the result of each choice that has an expert.
  void check_landed(Link& link, std::uint32_t call) const {
    const std::uint32_t me = link.rank();
    for (std::uint32_t choice = 0; choice < case_.tokens * case_.k; ++choice) {
      const std::uint32_t id = chosen(call, me, choice / case_.k, choice % case_.k);
      const bool has_expert = id < case_.ranks * case_.experts;
      link.expect(link.load(me, word_at(in_.at.landed, choice)) == (has_expert ? choice : kernels::peer::none),
                  "the choice has its result");
      const std::uint32_t want = value(call, me, choice / case_.k) * (id % case_.experts + 1) + call;
      if (has_expert) link.expect(link.load(me, in_.landed + 16 * choice) == want, "the result is right");
    }
  }

  /// Stands in for the experts and the sum of their results: row times the number of its expert.
  std::uint32_t sum_of_record(Link& link, std::uint32_t call, std::uint32_t i) const {
    const std::uint32_t me = link.rank();
    std::uint32_t sum = call + 1;
    for (std::uint32_t j = 0; j < case_.k; ++j) {
      const std::uint32_t place = link.load(me, word_at(in_.at.places, i * case_.k + j));
      if (place >= case_.rows) continue;
      sum += (expert_of(link, i * case_.k + j) + 1) * link.load(me, in_.out + std::uint64_t{place} * case_.row_bytes);
    }
    return sum;
  }
  void expect_nothing_returned(Link& link) const {
    for (std::uint32_t i = 0; i < case_.tokens * case_.ranks; ++i) {
      link.expect(link.load(link.rank(), place_of(i)) == 0, "no sum comes after an overflow");
    }
  }
  std::uint64_t place_of(std::uint32_t record) const {
    return in_.at.returned + std::uint64_t{record} * in_.at.place.pitch();
  }
  /// Expects the sum of each other rank that a token was sent to.
  void check_returned(Link& link, std::uint32_t call) const {
    for (std::uint32_t choice = 0; choice < case_.tokens * case_.k; ++choice) {
      const std::uint32_t i = link.load(link.rank(), word_at(in_.at.record_of_choice, choice));
      if (i == kernels::peer::none) continue;
      if (kernels::peer::rank_of_record(link, in_.at.departed, i) != link.rank()) check_sum(link, call, choice, i);
    }
  }
  void check_sum(Link& link, std::uint32_t call, std::uint32_t choice, std::uint32_t record) const {
    const std::uint32_t me = link.rank(), token = choice / case_.k;
    const std::uint32_t rank = chosen(call, me, token, choice % case_.k) / case_.experts;
    std::uint32_t sum = call + 1;
    for (std::uint32_t j = 0; j < case_.k; ++j) {
      const std::uint32_t id = chosen(call, me, token, j);
      if (is_mine(id, rank)) sum += (id % case_.experts + 1) * value(call, me, token);
    }
    link.expect(link.load(me, place_of(record)) == sum, "the sum is right");
  }

 private:
  /// Returns the expert of a choice of the records that came.
  std::uint32_t expert_of(Link& link, std::uint32_t choice) const {
    const std::uint32_t word = kernels::peer::record::experts + choice % case_.k;
    return link.load(link.rank(), record_word(in_.at, in_.at.arriving, choice / case_.k, word));
  }
  bool is_mine(std::uint32_t id, std::uint32_t rank) const { return id / case_.experts == rank; }
  std::uint32_t chosen(std::uint32_t call, std::uint32_t from, std::uint32_t token, std::uint32_t j) const {
    return static_cast<std::uint32_t>(case_.chosen(call, from, token, j));
  }
  /// Expects the rows of an expert from row `at` on; returns where they end.
  std::uint64_t check_expert(Link& link, std::uint32_t call, std::uint32_t expert, std::uint64_t at) const {
    const std::uint32_t me = link.rank();
    for (const std::uint32_t wanted : values_of_expert(link, call, expert)) {
      const std::uint64_t row = in_.out + at++ * case_.row_bytes;
      link.expect(link.load(me, row) == wanted, "the row is right");
      link.expect(link.load(me, row + case_.row_bytes - 4) == ~wanted, "the end of the row is right");
    }
    return at;
  }

  experts_case case_;
  expert_windows in_;
};

}  // namespace tmap::testing
