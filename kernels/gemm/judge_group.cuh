// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the groups of a grouped product, judges them, and finds where their matrices lie.

#include <tmap/detail/row_offsets.hpp>
#include <tmap/device/warp.cuh>

#include <cstdint>
#include <type_traits>

#include "kernels/batch/scan.cuh"
#include "kernels/gemm/judge_matrix.hpp"
#include "kernels/gemm/set_up.cuh"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

inline constexpr std::uint32_t set_up_threads = 256;
inline constexpr std::uint32_t set_up_warps = set_up_threads / device::warp_lanes;

namespace detail {

inline constexpr std::uint64_t unit = 16;

/// The part of the ragged dim that a group has.
struct group_range {
  std::int64_t begin;
  std::int64_t end;
  __device__ bool is_within(std::uint64_t extent) const {
    return 0 <= begin && begin <= end && end <= static_cast<std::int64_t>(extent);
  }
  __device__ bool overlaps(const group_range& other) const {
    return other.begin < other.end && begin < other.end && other.begin < end;
  }
};

/// The places of the matrices that a group's operands belong to.
struct operand_places {
  std::uint64_t a;
  std::uint64_t a_pitch;
  std::uint64_t b;
  std::uint64_t b_pitch;
};

struct judged_group {
  gemm_group group;
  operand_places at;
  std::uint32_t bits;
  bool has_work;  ///< something is written to C
};

/// Sums that all threads carry from one round to the next.
struct carried {
  std::int64_t rows{};
  std::int64_t latest{};
  std::int64_t tiles{};
};

__device__ inline std::uint64_t ragged_extent(const gemm::row_problem& problem) {
  return problem.rows;
}
__device__ inline std::uint64_t ragged_extent(const gemm::column_problem& problem) {
  return problem.columns;
}
__device__ inline std::uint64_t ragged_extent(const gemm::weight_problem& problem) {
  return problem.rows;
}

/// Returns whether groups share one C, in which two of them must not have the same part.
__device__ inline bool has_common_c(const gemm::row_problem& problem) {
  return problem.c_addresses == nullptr;
}
__device__ inline bool has_common_c(const gemm::column_problem&) {
  return true;
}
__device__ inline bool has_common_c(const gemm::weight_problem&) {
  return false;
}

/// Returns the range of group g. All threads call it, those without a group too.
__device__ inline group_range read_range(const row_offsets& offsets, const gemm_scratch& scratch, std::uint32_t g,
                                         bool has_group, carried& sums) {
  if (offsets.format == offset_format::labels) {
    const label_run run = has_group ? scratch.runs[g] : label_run{~0u, ~0u, ~0u};
    if (run.is_empty()) return {};
    if (run.runs != 0) return {0, -1};
    return {run.first, std::int64_t{run.first} + run.count()};
  }
  const tmap::detail::offset_reader<void> reader = tmap::detail::reader_of(offsets);
  std::int64_t begin = 0;
  if (offsets.format == offset_format::sizes) {
    begin = join_before_thread<set_up_warps>(has_group ? reader.offsets[g] : 0, sums.rows, add{});
  } else if (has_group) {
    begin = reader.begin(g);
  }
  const std::uint64_t rows = has_group ? reader.count(g, static_cast<std::uint64_t>(begin)) : 0;
  return {begin, add{}(begin, static_cast<std::int64_t>(rows))};
}

/// Returns whether a group that begins before the end of another has a part in common with one
/// before it. Such groups are rare, so each looks at all before it.
__device__ inline bool overlaps_earlier(const row_offsets& offsets, const group_range& range, std::uint32_t g,
                                        std::uint64_t extent) {
  const tmap::detail::offset_reader<void> reader = tmap::detail::reader_of(offsets);
  for (std::uint32_t i = 0; i < g; ++i) {
    const std::int64_t begin = reader.begin(i);
    const group_range other{begin, add{}(begin, static_cast<std::int64_t>(reader.count(i, 0)))};
    if (other.is_within(extent) && range.overlaps(other)) return true;
  }
  return false;
}

/// Along the lines of a matrix, copies begin at multiples of 16 bytes.
template <class Problem>
__device__ bool is_aligned(const Problem& problem, const group_range& range) {
  const auto is_unit = [&](std::int64_t at) {
    return static_cast<std::uint64_t>(at) * gemm::operand_bytes(problem.type) % unit == 0;
  };
  if constexpr (std::is_same_v<Problem, gemm::row_problem>) {
    return problem.a_layout == gemm::a_layout::m_by_k || is_unit(range.begin);
  } else if constexpr (std::is_same_v<Problem, gemm::column_problem>) {
    return problem.b_layout == gemm::b_layout::n_by_k || is_unit(range.begin);
  } else {
    const bool runs_along = problem.a_layout == gemm::a_layout::m_by_k || problem.b_layout == gemm::b_layout::n_by_k;
    return !runs_along || is_unit(range.begin);
  }
}

/// Judges a range. `latest` is where the groups before it end. In formats in which groups follow
/// each other, a group that begins before is bad; those that may have any order are compared.
template <class Problem>
__device__ std::uint32_t judge_range(const Problem& problem, const group_range& range, std::int64_t latest,
                                     std::uint32_t g) {
  if (range.begin == range.end) return gemm::group_status::empty_bit;
  const bool may_have_any_order = problem.offsets.format >= offset_format::begins_and_counts;
  bool is_good = range.is_within(ragged_extent(problem));
  if (!may_have_any_order) {
    is_good = is_good && range.begin >= latest;
  } else if (is_good && problem.offsets.format == offset_format::begins_and_counts && range.begin < latest &&
             has_common_c(problem)) {
    is_good = !overlaps_earlier(problem.offsets, range, g, ragged_extent(problem));
  }
  if (!is_good) return static_cast<std::uint32_t>(gemm::fault::rows);
  return is_aligned(problem, range) ? 0 : static_cast<std::uint32_t>(gemm::fault::alignment);
}

/// Returns the faults of an address from a list.
__device__ inline std::uint32_t judge_listed(const std::uint64_t* addresses, std::uint32_t g, std::uint64_t pitch,
                                             std::uint64_t lines, std::uint64_t line_bytes) {
  return addresses == nullptr ? 0 : judge_matrix(addresses[g], pitch, lines, line_bytes);
}

__device__ inline void place_group(const gemm::row_problem& problem, const group_range& range, std::uint32_t g,
                                   judged_group& judged) {
  const auto rows = static_cast<std::uint64_t>(range.end - range.begin);
  const bool is_along = problem.b_layout == gemm::b_layout::n_by_k;
  const std::uint64_t b_line = (is_along ? problem.k : problem.n) * gemm::operand_bytes(problem.type);
  if (judged.bits == 0) {
    const std::uint64_t c_line = c_columns(problem, problem.n) * gemm::result_bytes(problem.c_type);
    judged.bits |=
        judge_listed(problem.b_addresses, g, problem.b.pitch_bytes, is_along ? problem.n : problem.k, b_line) |
        judge_listed(problem.c_addresses, g, problem.c.pitch_bytes, rows, c_line);
  }
  judged.has_work = judged.bits == 0;
  if (!judged.has_work) return;
  const auto begin = static_cast<std::uint32_t>(range.begin);
  judged.at = {problem.a.address, problem.a.pitch_bytes, has_own_b(problem) ? problem.b_addresses[g] : 0,
               problem.b.pitch_bytes};
  gemm_group& group = judged.group;
  group.m = static_cast<std::uint32_t>(rows);
  group.n = static_cast<std::uint32_t>(problem.n);
  group.k = static_cast<std::uint32_t>(problem.k);
  group.first_row = begin;
  group.c_pitch = problem.c.pitch_bytes;
  const std::uint64_t first = stores_by_index(problem) ? 0 : begin;
  group.c = problem.c_addresses != nullptr ? problem.c_addresses[g] : problem.c.address + first * group.c_pitch;
}

__device__ inline void place_group(const gemm::column_problem& problem, const group_range& range, std::uint32_t g,
                                   judged_group& judged) {
  judged.has_work = judged.bits == 0;
  if (!judged.has_work) return;
  const auto begin = static_cast<std::uint32_t>(range.begin);
  judged.at = {problem.a.address + g * problem.a_group_pitch_bytes, problem.a.pitch_bytes, problem.b.address,
               problem.b.pitch_bytes};
  gemm_group& group = judged.group;
  group.m = static_cast<std::uint32_t>(problem.m);
  group.n = static_cast<std::uint32_t>(range.end - range.begin);
  group.k = static_cast<std::uint32_t>(problem.k);
  group.first_column = begin;
  group.c_pitch = problem.c.pitch_bytes;
  group.c = problem.c.address + begin * sizeof(std::uint16_t);
}

__device__ inline void place_group(const gemm::weight_problem& problem, const group_range& range, std::uint32_t g,
                                   judged_group& judged) {
  const bool has_no_rows = judged.bits == gemm::group_status::empty_bit;
  const std::uint32_t listed = judge_listed(problem.c_addresses, g, problem.c.pitch_bytes, problem.m,
                                            problem.n * gemm::result_bytes(problem.c_type));
  if (listed != 0) judged.bits = has_no_rows ? listed : judged.bits | listed;
  const bool is_good = judged.bits == 0;
  judged.has_work = is_good || judged.bits == gemm::group_status::empty_bit || problem.zero_rest;
  if (!judged.has_work) return;
  judged.at = {problem.a.address, problem.a.pitch_bytes, problem.b.address, problem.b.pitch_bytes};
  gemm_group& group = judged.group;
  group.m = static_cast<std::uint32_t>(problem.m);
  group.n = static_cast<std::uint32_t>(problem.n);
  group.k = is_good ? static_cast<std::uint32_t>(range.end - range.begin) : 0;
  group.first_k = is_good ? static_cast<std::uint32_t>(range.begin) : 0;
  group.c_pitch = problem.c.pitch_bytes;
  group.c =
      problem.c_addresses != nullptr ? problem.c_addresses[g] : problem.c.address + g * problem.c_group_pitch_bytes;
}

__device__ inline bool is_extent(std::int64_t value) {
  return value >= 0 && static_cast<std::uint64_t>(value) <= gemm::max_extent;
}

__device__ inline judged_group pointer_group(const gemm::pointer_problem& problem, std::uint32_t g) {
  const std::uint32_t bytes = gemm::operand_bytes(problem.type);
  const std::int64_t m = problem.m[g];
  const std::int64_t n = problem.n[g];
  const std::int64_t k = problem.k[g];
  judged_group judged{};
  if (!is_extent(m)) judged.bits |= static_cast<std::uint32_t>(gemm::fault::rows);
  const std::uint32_t c_bytes = gemm::result_bytes(problem.c_type);
  const bool is_along = problem.b_layout == gemm::b_layout::n_by_k;
  const auto judge_columns = [&](std::int64_t columns, std::uint32_t element_bytes) {
    const bool is_good = is_extent(columns) && static_cast<std::uint64_t>(columns) * element_bytes % unit == 0;
    if (!is_good) judged.bits |= static_cast<std::uint32_t>(gemm::fault::extent);
  };
  judge_columns(k, bytes);
  judge_columns(n, is_along ? c_bytes : bytes);
  const bool is_empty = judged.bits == 0 && (m == 0 || n == 0 || k == 0);
  const bool has_extents = judged.bits == 0;
  const auto judge = [&](std::uint64_t address, std::int64_t pitch, std::int64_t lines, std::int64_t elements,
                         std::uint32_t element_bytes) {
    if (!has_extents) lines = elements = 0;
    return judge_matrix(address, static_cast<std::uint64_t>(pitch), static_cast<std::uint64_t>(lines),
                        static_cast<std::uint64_t>(elements) * element_bytes);
  };
  const std::uint32_t c_bits = judge(problem.c[g], problem.c_pitch_bytes[g], m, n, c_bytes);
  if (is_empty) {
    judged.bits = gemm::group_status::empty_bit;
    judged.has_work = m != 0 && n != 0 && c_bits == 0;
  } else {
    const bool has_rows_of_a = problem.a_layout == gemm::a_layout::m_by_k;
    judged.bits |= c_bits |
                   judge(problem.a[g], problem.a_pitch_bytes[g], has_rows_of_a ? m : k, has_rows_of_a ? k : m, bytes) |
                   judge(problem.b[g], problem.b_pitch_bytes[g], is_along ? n : k, is_along ? k : n, bytes);
    judged.has_work = judged.bits == 0;
  }
  if (!judged.has_work) return judged;
  judged.at = {problem.a[g], static_cast<std::uint64_t>(problem.a_pitch_bytes[g]), problem.b[g],
               static_cast<std::uint64_t>(problem.b_pitch_bytes[g])};
  gemm_group& group = judged.group;
  group.c = problem.c[g];
  group.c_pitch = static_cast<std::uint64_t>(problem.c_pitch_bytes[g]);
  group.m = static_cast<std::uint32_t>(m);
  group.n = static_cast<std::uint32_t>(n);
  group.k = static_cast<std::uint32_t>(k);
  return judged;
}

/// All threads call these, those without a group too.
__device__ inline judged_group judge_group(const gemm::pointer_problem& problem, const gemm_scratch&, std::uint32_t g,
                                           carried&) {
  return g < problem.groups ? pointer_group(problem, g) : judged_group{};
}
template <class Problem>
__device__ judged_group judge_group(const Problem& problem, const gemm_scratch& scratch, std::uint32_t g,
                                    carried& sums) {
  const bool has_group = g < problem.groups;
  const group_range range = read_range(problem.offsets, scratch, g, has_group, sums);
  const std::int64_t latest = join_before_thread<set_up_warps>(has_group ? range.end : 0, sums.latest, larger{});
  if (!has_group) return {};
  judged_group judged{};
  judged.bits = judge_range(problem, range, latest, g);
  place_group(problem, range, g, judged);
  return judged;
}

}  // namespace detail
}  // namespace tmap::kernels
