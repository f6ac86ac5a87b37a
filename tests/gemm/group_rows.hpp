// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

// Makes groups of rows as offsets of any format, including hostile ones, and judges them.

namespace tmap::gemm::testing {

inline constexpr offset_format every_format[] = {offset_format::ends,  offset_format::prefix,
                                                 offset_format::sizes, offset_format::begins_and_counts,
                                                 offset_format::slots, offset_format::labels};

/// Returns the number of rows of all groups.
inline std::uint64_t sum_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) sum += size;
  return static_cast<std::uint64_t>(sum);
}

/// Holds where groups of some sizes lie, in the order and with the gaps that a format allows.
struct group_places {
  std::vector<std::int64_t> begins;
  std::uint64_t rows{};       ///< up to the last group's end
  std::uint64_t slot_rows{};  ///< of `offset_format::slots`
};

/// `gap` rows lie between some groups.
inline group_places places_of(const std::vector<std::int64_t>& sizes, offset_format format, std::int64_t gap = 8) {
  const auto groups = static_cast<std::int64_t>(sizes.size());
  group_places places;
  if (format == offset_format::slots) {
    places.slot_rows = 1;
    for (const std::int64_t size : sizes) {
      places.slot_rows = std::max(places.slot_rows, static_cast<std::uint64_t>(size + gap));
    }
    places.rows = places.slot_rows * sizes.size();
    for (std::int64_t g = 0; g < groups; ++g) {
      places.begins.push_back(g * static_cast<std::int64_t>(places.slot_rows));
    }
    return places;
  }
  const bool has_gaps = format == offset_format::begins_and_counts || format == offset_format::labels;
  places.begins.resize(sizes.size());
  std::int64_t row = has_gaps ? gap : 0;
  for (std::int64_t i = 0; i < groups; ++i) {
    // The first groups lie after the last ones.
    const auto g = static_cast<std::size_t>(has_gaps ? (i + groups / 2) % groups : i);
    places.begins[g] = row;
    row += sizes[g] + (has_gaps && i % 3 == 0 ? gap : 0);
  }
  places.rows = static_cast<std::uint64_t>(row);
  return places;
}

/// Returns the values of an offset array for groups of these sizes, out of `rows` rows. Begins come
/// before counts.
inline std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& sizes, offset_format format,
                                            std::uint64_t rows = 0, std::int64_t gap = 8) {
  const group_places places = places_of(sizes, format, gap);
  std::vector<std::int64_t> values;
  switch (format) {
    case offset_format::sizes:
    case offset_format::slots: return sizes;
    case offset_format::begins_and_counts:
      values = places.begins;
      values.insert(values.end(), sizes.begin(), sizes.end());
      return values;
    case offset_format::labels:
      values.assign(std::max(rows, places.rows), -1);
      for (std::size_t g = 0; g < sizes.size(); ++g) {
        std::fill_n(values.begin() + places.begins[g], sizes[g], static_cast<std::int64_t>(g));
      }
      return values;
    default: break;
  }
  if (format == offset_format::prefix) values.push_back(0);
  std::int64_t end = 0;
  for (const std::int64_t size : sizes) values.push_back(end += size);
  return values;
}

inline std::vector<unsigned char> offset_bytes_of(const std::vector<std::int64_t>& values, std::uint32_t bytes) {
  std::vector<unsigned char> packed(values.size() * bytes);
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(packed.data() + i * bytes, &values[i], bytes);
  return packed;
}

struct judged_group {
  std::uint64_t begin{};
  std::uint64_t end{};
  group_status status{};
};

/// Holds what the device reads to find groups.
struct group_offsets {
  std::vector<std::int64_t> values;
  offset_format format{};
  std::uint32_t groups{};
  std::uint64_t rows{};
  std::uint64_t slot_rows{};
  bool has_common_output{true};
  std::uint64_t begin_unit{1};  ///< begins are multiples of it
};

/// Rounds sizes up, so that groups begin where copies can.
inline std::vector<std::int64_t> aligned_sizes(std::vector<std::int64_t> sizes, std::int64_t unit = 8) {
  for (std::int64_t& size : sizes) size = (size + unit - 1) / unit * unit;
  return sizes;
}

inline bool is_within(std::int64_t begin, std::int64_t end, std::uint64_t rows) {
  return 0 <= begin && begin <= end && end <= static_cast<std::int64_t>(rows);
}
inline std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

inline judged_group judged_as(std::int64_t begin, std::int64_t end, bool is_good) {
  judged_group group{static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end), {}};
  if (begin == end) {
    group.status.bits = group_status::empty_bit;
  } else if (!is_good) {
    group.status.bits = static_cast<std::uint32_t>(fault::rows);
  }
  return group;
}

inline std::vector<judged_group> judge_in_order(const group_offsets& of) {
  std::vector<judged_group> judged;
  std::int64_t latest = 0;
  std::int64_t sum = 0;
  for (std::uint32_t g = 0; g < of.groups; ++g) {
    const bool is_prefix = of.format == offset_format::prefix;
    const std::int64_t begin = is_prefix ? of.values[g] : sum;
    const std::int64_t total = wrapped_sum(sum, of.values[g]);
    const std::int64_t end = is_prefix ? of.values[g + 1] : of.format == offset_format::sizes ? total : of.values[g];
    sum = end;
    judged.push_back(judged_as(begin, end, begin >= latest && is_within(begin, end, of.rows)));
    latest = std::max(latest, end);
  }
  return judged;
}

inline std::vector<judged_group> judge_begins(const group_offsets& of) {
  std::vector<judged_group> judged;
  for (std::uint32_t g = 0; g < of.groups; ++g) {
    const std::int64_t begin = of.values[g];
    const std::int64_t end = wrapped_sum(begin, of.values[of.groups + g]);
    bool is_good = is_within(begin, end, of.rows);
    for (std::uint32_t i = 0; i < g && of.has_common_output; ++i) {
      const std::int64_t other = of.values[i];
      const std::int64_t other_end = wrapped_sum(other, of.values[of.groups + i]);
      const bool has_rows = other < other_end && is_within(other, other_end, of.rows);
      if (has_rows && begin < other_end && other < end) is_good = false;
    }
    judged.push_back(judged_as(begin, end, is_good));
  }
  return judged;
}

inline std::vector<judged_group> judge_slots(const group_offsets& of) {
  std::vector<judged_group> judged;
  for (std::uint32_t g = 0; g < of.groups; ++g) {
    const auto begin = static_cast<std::int64_t>(g * of.slot_rows);
    const bool fits = of.values[g] >= 0 && of.values[g] <= static_cast<std::int64_t>(of.slot_rows);
    const std::int64_t end = fits ? begin + of.values[g] : -1;
    judged.push_back(judged_as(begin, end, is_within(begin, end, of.rows)));
  }
  return judged;
}

inline std::vector<judged_group> judge_labels(const group_offsets& of) {
  std::vector<judged_group> judged(of.groups, judged_as(0, 0, true));
  std::vector<int> runs(of.groups);
  for (std::uint64_t row = 0; row < of.rows; ++row) {
    const std::int64_t label = of.values[row];
    if (label < 0 || label >= std::int64_t{of.groups}) continue;
    if (row == 0 || of.values[row - 1] != label) {
      judged[label].begin = row;
      ++runs[label];
    }
    judged[label].end = row + 1;
  }
  for (std::uint32_t g = 0; g < of.groups; ++g) {
    judged[g].status.bits = runs[g] == 0   ? group_status::empty_bit
                            : runs[g] == 1 ? 0
                                           : static_cast<std::uint32_t>(fault::rows);
  }
  return judged;
}

inline std::vector<judged_group> judge_ranges(const group_offsets& of) {
  switch (of.format) {
    case offset_format::begins_and_counts: return judge_begins(of);
    case offset_format::slots: return judge_slots(of);
    case offset_format::labels: return judge_labels(of);
    default: return judge_in_order(of);
  }
}

/// Judges groups as the contract of `fault` states, word by word.
inline std::vector<judged_group> judge(const group_offsets& of) {
  std::vector<judged_group> judged = judge_ranges(of);
  for (judged_group& group : judged) {
    const bool is_aligned = group.begin % of.begin_unit == 0;
    if (group.status.is_good() && !is_aligned) group.status.bits = static_cast<std::uint32_t>(fault::alignment);
  }
  return judged;
}

inline batch_header header_of(const std::vector<judged_group>& judged) {
  batch_header header{};
  for (std::uint32_t g = 0; g < judged.size(); ++g) {
    header.empty_count += judged[g].status.is_empty() ? 1 : 0;
    if (!judged[g].status.is_bad()) continue;
    header.first_bad = std::min(header.first_bad, g);
    ++header.bad_count;
  }
  return header;
}

}  // namespace tmap::gemm::testing
