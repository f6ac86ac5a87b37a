// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/moe.hpp>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "device/recorded_call.hpp"
#include "moe/moe_reference.hpp"

// Puts the arrays of this folder's tests into device memory, between margins that nothing may
// change.

namespace tmap::moe::testing {

using tmap::testing::device_array;
using tmap::testing::recorded_call;

/// An output of `count` elements, poisoned like its margins.
template <class T>
class guarded {
 public:
  explicit guarded(std::uint64_t count) : count_(count), memory_(count + 2 * margin) {}

  T* data() const { return memory_.data() + margin; }
  std::uint64_t count() const { return count_; }
  void reset() const { memory_.fill_poison(); }
  /// Returns the elements, and expects the margins to be as they were.
  std::vector<T> download(const std::string& what) const {
    const std::vector<T> all = memory_.download();
    const auto first = all.begin() + margin;
    const auto last = first + static_cast<std::ptrdiff_t>(count_);
    const auto is_unchanged = [](const T& value) { return tmap::testing::is_poison(value); };
    EXPECT_TRUE(std::all_of(all.begin(), first, is_unchanged)) << what << ": before the first element";
    EXPECT_TRUE(std::all_of(last, all.end(), is_unchanged)) << what << ": after the last element";
    return {first, last};
  }
  /// Expects the same bits in all elements.
  void expect(const std::vector<T>& want, const std::string& what) const {
    const std::vector<T> got = download(what);
    ASSERT_EQ(got.size(), want.size()) << what;
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::memcmp(&got[i], &want[i], sizeof(T)) == 0) continue;
      if (wrong++ < 3) ADD_FAILURE() << what << "[" << i << "]: " << word(got[i]) << ", not " << word(want[i]);
    }
    EXPECT_EQ(wrong, 0u) << what;
  }

 private:
  static constexpr std::ptrdiff_t margin = 64;

  template <class Fault>
  static double word(item_status<Fault> status) {
    return status.bits;
  }
  template <class Number>
  static double word(Number number) {
    return static_cast<double>(number);
  }

  std::uint64_t count_;
  device_array<T> memory_;
};

/// A workspace of an exact number of bytes, with poison before and after.
class bounded_workspace {
 public:
  explicit bounded_workspace(std::uint64_t bytes)
      : bytes_(bytes),
        memory_(bytes + 2 * alignment),
        first_(alignment - reinterpret_cast<std::uintptr_t>(memory_.data()) % alignment) {}

  workspace place() const { return {memory_.data() + first_, bytes_}; }
  /// Expects that no byte outside was written.
  void expect_bounds() const {
    const std::vector<unsigned char> got = memory_.download("workspace");
    for (std::uint64_t i = 0; i < got.size(); ++i) {
      const bool is_inside = i >= first_ && i < first_ + bytes_;
      ASSERT_TRUE(is_inside || got[i] == device_array<char>::poison) << i;
    }
  }

 private:
  static constexpr std::uint64_t alignment = 256;

  std::uint64_t bytes_;
  guarded<unsigned char> memory_;
  std::uint64_t first_;
};

/// Holds the reports of a call, which begin as poison.
class reports_on_device {
 public:
  explicit reports_on_device(std::uint64_t choices) : statuses_(choices), header_(1) {}

  run on(cudaStream_t stream, const workspace& scratch = {}) const {
    return {.where = {cuda::stream_ref{stream}, scratch}, .statuses = statuses_.data(), .header = header_.data()};
  }
  void reset() const {
    statuses_.reset();
    header_.reset();
  }
  void expect(const std::vector<choice_status>& want, const std::string& what) const {
    statuses_.expect(want, what + ": statuses");
    const batch_header header = header_.download(what + ": header")[0];
    const batch_header wanted = header_of(want);
    EXPECT_EQ(header.bad_count, wanted.bad_count) << what;
    EXPECT_EQ(header.first_bad, wanted.first_bad) << what;
    EXPECT_EQ(header.empty_count, wanted.empty_count) << what;
  }

 private:
  guarded<choice_status> statuses_;
  guarded<batch_header> header_;
};

/// Holds all results of `route`.
class results_on_device {
 public:
  explicit results_on_device(const route_sizes& sizes)
      : sizes_(sizes),
        ids_(sizes.choices()),
        weights_(sizes.choices()),
        counts_(sizes.experts),
        begins_(sizes.experts + 1),
        ends_(sizes.experts),
        row_of_choice_(sizes.choices()),
        token_of_row_(sizes.row_count()),
        weight_of_row_(sizes.row_count()),
        reports_(sizes.choices()) {}

  /// Returns the places of all results that choices of this kind have.
  route_results places(bool are_given) const {
    route_results made{.counts = counts_.data(),
                       .begins = begins_.data(),
                       .ends = ends_.data(),
                       .row_of_choice = row_of_choice_.data(),
                       .token_of_row = token_of_row_.data(),
                       .weight_of_row = weight_of_row_.data()};
    if (are_given) return made;
    made.ids = ids_.data();
    made.weights = weights_.data();
    return made;
  }
  const reports_on_device& reports() const { return reports_; }
  const guarded<std::int32_t>& ids() const { return ids_; }
  const guarded<float>& weights() const { return weights_; }
  const guarded<std::int32_t>& counts() const { return counts_; }
  const guarded<float>& weight_of_row() const { return weight_of_row_; }

  void reset() const {
    for (const auto* each : {&ids_, &counts_, &begins_, &ends_, &row_of_choice_, &token_of_row_}) each->reset();
    weights_.reset();
    weight_of_row_.reset();
    reports_.reset();
  }
  void expect(const sorted_choices& want, const std::string& what) const {
    counts_.expect(want.counts, what + ": counts");
    begins_.expect(want.begins, what + ": begins");
    ends_.expect(want.ends, what + ": ends");
    row_of_choice_.expect(want.row_of_choice, what + ": row_of_choice");
    token_of_row_.expect(want.token_of_row, what + ": token_of_row");
    weight_of_row_.expect(want.weight_of_row, what + ": weight_of_row");
    reports_.expect(want.statuses, what);
  }

 private:
  route_sizes sizes_;
  guarded<std::int32_t> ids_;
  guarded<float> weights_;
  guarded<std::int32_t> counts_;
  guarded<std::int32_t> begins_;
  guarded<std::int32_t> ends_;
  guarded<std::int32_t> row_of_choice_;
  guarded<std::int32_t> token_of_row_;
  guarded<float> weight_of_row_;
  reports_on_device reports_;
};

inline route_problem problem_of(const route_sizes& sizes) {
  return {.tokens = sizes.tokens,
          .experts = sizes.experts,
          .k = sizes.k,
          .choices = {},
          .alignment = sizes.alignment,
          .rows = sizes.rows};
}

}  // namespace tmap::moe::testing
