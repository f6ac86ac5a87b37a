// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

// Makes groups of rows as offsets of any format, including hostile ones, and judges them.

namespace tmap::gemm::testing {

/// Returns the number of rows of all groups.
inline std::uint64_t sum_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) sum += size;
  return static_cast<std::uint64_t>(sum);
}

/// Returns the values of an offset array for groups of these sizes.
inline std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& sizes, offset_format format) {
  if (format == offset_format::sizes) return sizes;
  std::vector<std::int64_t> values;
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

/// Judges groups as the contract of `fault::rows` states, word by word.
inline std::vector<judged_group> judge(const std::vector<std::int64_t>& values, offset_format format,
                                       std::uint32_t groups, std::uint64_t rows) {
  std::vector<judged_group> judged;
  std::int64_t latest = 0;
  std::int64_t sum = 0;
  for (std::uint32_t g = 0; g < groups; ++g) {
    const bool is_prefix = format == offset_format::prefix;
    const std::int64_t begin = is_prefix ? values[g] : sum;
    const auto total =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(values[g]));
    const std::int64_t end = is_prefix ? values[g + 1] : format == offset_format::sizes ? total : values[g];
    sum = end;
    const bool is_good = begin >= latest && begin <= end && end <= static_cast<std::int64_t>(rows);
    latest = std::max(latest, end);
    judged_group group{static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end), {}};
    if (begin == end) {
      group.status.bits = group_status::empty_bit;
    } else if (!is_good) {
      group.status.bits = static_cast<std::uint32_t>(fault::rows);
    }
    judged.push_back(group);
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
