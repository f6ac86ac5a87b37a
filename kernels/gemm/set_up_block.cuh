// SPDX-License-Identifier: Apache-2.0
#pragma once

// Set-up of a grouped product. Each block reads all groups, 256 at a time, judges them and adds up
// their tiles. The blocks share the encoding of the maps.

#include <tmap/config.hpp>
#include <tmap/detail/row_offsets.hpp>
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/map_guard.cuh>
#include <tmap/device/report_bad.cuh>
#include <tmap/device/work_queue.cuh>

#include <cstdint>
#include <type_traits>

#include "kernels/batch/block_header.cuh"
#include "kernels/batch/scan.cuh"
#include "kernels/gemm/judge_matrix.hpp"
#include "kernels/gemm/set_up.cuh"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

inline constexpr std::uint32_t set_up_threads = 256;
inline constexpr std::uint32_t set_up_warps = set_up_threads / device::warp_lanes;

struct set_up_shared {
  device::warp_stage stages[set_up_warps];
  block_header header;
};

/// The share of one block. Set-up is shared by parts: a part is one operand's maps of a round of
/// `set_up_threads` groups.
struct set_up_share {
  std::uint32_t block;
  std::uint32_t blocks;
  __device__ bool has(std::uint32_t part) const { return part % blocks == block; }
};

TMAP_HOST_DEVICE constexpr std::uint32_t set_up_rounds(std::uint32_t groups) {
  return (groups + set_up_threads - 1) / set_up_threads;
}

namespace detail {

inline constexpr std::uint64_t unit = 16;
using map_shape = device::fixed_shape<2, patch_extents(2)>;

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
  group.c = problem.c_addresses != nullptr ? problem.c_addresses[g] : problem.c.address + begin * group.c_pitch;
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
  judged.has_work = judged.bits == 0 || judged.bits == gemm::group_status::empty_bit;
  if (!judged.has_work) return;
  judged.at = {problem.a.address, problem.a.pitch_bytes, problem.b.address, problem.b.pitch_bytes};
  gemm_group& group = judged.group;
  group.m = static_cast<std::uint32_t>(problem.m);
  group.n = static_cast<std::uint32_t>(problem.n);
  group.k = static_cast<std::uint32_t>(range.end - range.begin);
  group.first_k = has_no_rows ? 0 : static_cast<std::uint32_t>(range.begin);
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

template <class Problem>
__device__ std::int64_t tiles_of(const set_up_request<Problem>& request, const judged_group& judged) {
  if (!judged.has_work) return 0;
  // Extents are at most 2^31.
  const std::uint64_t rows = (judged.group.m + request.tile.m - 1) / request.tile.m;
  const std::uint64_t columns =
      (results_of_row(request.problem, judged.group.n) + request.tile.result_n - 1) / request.tile.result_n;
  return static_cast<std::int64_t>(request.tile.are_paired ? count_pairs(rows, columns) : rows * columns);
}

__device__ inline map_patch patch_of(std::uint64_t address, std::uint64_t columns, std::uint64_t rows,
                                     std::uint64_t pitch) {
  map_patch patch{};
  patch.global_address = address;
  patch.global_dim[0] = columns;
  patch.global_dim[1] = rows;
  patch.global_stride_bytes[0] = pitch;
  return patch;
}

/// The maps that a group may have of its own.
enum class operand : std::uint32_t { c, a, b, second };

/// Returns the i-th operand of which the problem's groups have maps.
template <class Problem>
__device__ operand operand_at(const Problem& problem, std::uint32_t i) {
  if (i >= static_cast<std::uint32_t>(operand::a) && !has_own_a(problem)) ++i;
  if (i >= static_cast<std::uint32_t>(operand::b) && !has_own_b(problem)) ++i;
  return static_cast<operand>(i);
}
__device__ inline const map_template& base_of(const gemm_maps& maps, operand of) {
  return of == operand::c ? maps.c : of == operand::a ? maps.a : of == operand::b ? maps.b : maps.second;
}
__device__ inline tensor_map* slots_of(const gemm_scratch& scratch, operand of) {
  return of == operand::c ? scratch.c : of == operand::a ? scratch.a : of == operand::b ? scratch.b : scratch.second;
}

/// Returns the columns of the map of C.
__device__ inline std::uint64_t first_columns(const gemm::row_problem& problem, std::uint64_t n) {
  return has_second_gradients(problem.epilogue.gate) ? n : c_columns(problem, n);
}
template <class Problem>
__device__ std::uint64_t first_columns(const Problem&, std::uint64_t n) {
  return n;
}

/// Returns the patch of the second map of results.
__device__ inline map_patch patch_of_second(const gemm::row_problem& problem, const gemm_group& group) {
  if (has_second_gradients(problem.epilogue.gate)) {
    return patch_of(group.c + std::uint64_t{group.n} * sizeof(std::uint16_t), group.n, group.m, group.c_pitch);
  }
  const gemm::matrix& kept = problem.epilogue.gate.kept;
  return patch_of(kept.address + group.first_row * kept.pitch_bytes, group.n, group.m, kept.pitch_bytes);
}
template <class Problem>
__device__ map_patch patch_of_second(const Problem&, const gemm_group&) {
  return {};
}

/// Returns the patch of one operand's map. For a group without work, or an operand with nothing to
/// sum over, the patch makes the safe empty map.
template <class Problem>
__device__ map_patch patch_of(const Problem& problem, const judged_group& judged, operand of) {
  const gemm_group& group = judged.group;
  const operand_places& at = judged.at;
  if (!judged.has_work) return {};
  if (of == operand::c) return patch_of(group.c, first_columns(problem, group.n), group.m, group.c_pitch);
  if (of == operand::second) return patch_of_second(problem, group);
  if (group.k == 0) return {};
  const std::uint64_t k = std::uint64_t{group.first_k} + group.k;
  if (of == operand::a) {
    const std::uint64_t m = std::uint64_t{group.first_row} + group.m;
    return problem.a_layout == gemm::a_layout::m_by_k ? patch_of(at.a, k, m, at.a_pitch)
                                                      : patch_of(at.a, m, k, at.a_pitch);
  }
  const std::uint64_t n = std::uint64_t{group.first_column} + group.n;
  return problem.b_layout == gemm::b_layout::n_by_k ? patch_of(at.b, k, n, at.b_pitch)
                                                    : patch_of(at.b, n, k, at.b_pitch);
}

/// Stores the maps of a warp's groups that are in this block's share. `first` is the first group of
/// the warp. The loop stays rolled: code that runs once costs by its length.
template <class Problem>
__device__ void encode_maps(const set_up_request<Problem>& request, const gemm_maps& maps, const judged_group& judged,
                            std::uint32_t first, device::warp_stage& stage, const device::guard_page& page,
                            set_up_share mine) {
  const std::uint32_t left = request.problem.groups - first;
  const std::uint32_t count = left < device::warp_lanes ? left : device::warp_lanes;
  const device::map_guard guard{&page};
  const std::uint32_t operands = set_up_operands(request.problem);
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i < operands; ++i) {
    if (!mine.has(first / set_up_threads * operands + i)) continue;
    const operand of = operand_at(request.problem, i);
    device::warp_encoder encoder(base_of(maps, of), stage, map_shape{});
    tensor_map* const slots = slots_of(request.scratch, of);
    encoder.compose([&](std::uint64_t) { return patch_of(request.problem, judged, of); }, first, count, guard);
    encoder.store(slots + first, count);
  }
}

/// All threads call it. `bits` are 0 past the last group.
template <class Problem>
__device__ void report(const set_up_request<Problem>& request, std::uint32_t g, std::uint32_t bits,
                       block_header& header) {
  const gemm::group_status status{bits};
  if (request.statuses != nullptr && g < request.problem.groups) request.statuses[g] = status;
  if (__all_sync(~0u, status.is_good())) return;
  device::report_bad(request.faults, item_kind::group, g, status.is_bad() ? bits : 0);
  const batch_header groups = device::tally_items(g, status);
  if (threadIdx.x % device::warp_lanes == 0) device::add_to_header(header, groups);
}

}  // namespace detail

/// Sets up all groups. All threads of a block of `set_up_threads` call it. Every block judges all
/// groups and adds up all tiles. It writes the maps of its share, and the records of a round
/// together with the round's first operand. The first block writes what belongs to the call.
/// Products must not run meanwhile. Safe empty maps point to `page`, which belongs to the kernel's
/// module.
template <class Problem>
__device__ void set_up_groups(const set_up_request<Problem>& request, const gemm_maps& maps, set_up_shared& shared,
                              const device::guard_page& page, set_up_share mine) {
  const std::uint32_t groups = request.problem.groups;
  const bool is_first = mine.block == 0;
  if (threadIdx.x == 0) {
    shared.header.reset();
    if (is_first) request.scratch.taken->taken = 0;
  }
  __syncthreads();
  detail::carried sums;
  for (std::uint32_t first = 0; first < groups; first += set_up_threads) {
    const std::uint32_t g = first + threadIdx.x;
    const detail::judged_group judged = detail::judge_group(request.problem, request.scratch, g, sums);
    const std::int64_t tiles = detail::tiles_of(request, judged);
    const std::int64_t before = join_before_thread<set_up_warps>(tiles, sums.tiles, add{});
    if (is_first) detail::report(request, g, judged.bits, shared.header);
    if (mine.has(first / set_up_threads * set_up_operands(request.problem)) && g < groups) {
      request.scratch.groups[g] = judged.group;
      request.scratch.tile_ends[g] = static_cast<std::uint64_t>(before + tiles);
    }
    const std::uint32_t warp = threadIdx.x / device::warp_lanes;
    const std::uint32_t warp_first = first + warp * device::warp_lanes;
    if (warp_first < groups) {
      detail::encode_maps(request, maps, judged, warp_first, shared.stages[warp], page, mine);
    }
  }
  device::warp_encoder<detail::map_shape>::release();
  __syncthreads();
  if (threadIdx.x == 0 && is_first && request.header != nullptr) *request.header = shared.header.value();
}

}  // namespace tmap::kernels
