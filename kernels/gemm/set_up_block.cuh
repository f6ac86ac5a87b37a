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

/// The number of operands of which each group has a map of its own. B of a `row_problem` has one
/// map for all groups.
template <class Problem>
inline constexpr std::uint32_t set_up_operands = std::is_same_v<Problem, gemm::row_problem> ? 2 : 3;

TMAP_HOST_DEVICE constexpr std::uint32_t set_up_rounds(std::uint32_t groups) {
  return (groups + set_up_threads - 1) / set_up_threads;
}

namespace detail {

inline constexpr std::uint64_t unit = 16;
using map_shape = device::fixed_shape<2, patch_extents(2)>;

struct row_range {
  std::int64_t begin;
  std::int64_t end;
};

struct judged_group {
  gemm_group group;
  std::uint32_t bits;
  bool has_work;  ///< something is written to C
};

/// Sums that all threads carry from one round to the next.
struct carried {
  std::int64_t rows{};
  std::int64_t latest{};
  std::int64_t tiles{};
};

/// Returns where group g's rows are. All threads call it, those without a group too.
__device__ inline row_range read_rows(const row_offsets& offsets, std::uint32_t g, bool has_group, carried& sums) {
  const tmap::detail::offset_reader<void> reader{{offsets.values, offsets.bytes}, offsets.format};
  std::int64_t begin = 0;
  if (offsets.format == offset_format::sizes) {
    begin = join_before_thread<set_up_warps>(has_group ? reader.offsets[g] : 0, sums.rows, add{});
  } else if (has_group) {
    begin = reader.begin(g);
  }
  const std::uint64_t rows = has_group ? reader.count(g, static_cast<std::uint64_t>(begin)) : 0;
  return {begin, add{}(begin, static_cast<std::int64_t>(rows))};
}

__device__ inline std::uint32_t judge_rows(const row_range& range, std::int64_t latest, std::uint64_t rows) {
  if (range.begin == range.end) return gemm::group_status::empty_bit;
  const bool is_good =
      range.begin >= latest && range.begin <= range.end && range.end <= static_cast<std::int64_t>(rows);
  return is_good ? 0 : static_cast<std::uint32_t>(gemm::fault::rows);
}

__device__ inline judged_group group_of(const gemm::row_problem& problem, const row_range& range, std::uint32_t bits,
                                        std::uint32_t) {
  judged_group judged{};
  judged.bits = bits;
  judged.has_work = bits == 0;
  if (!judged.has_work) return judged;
  const auto begin = static_cast<std::uint64_t>(range.begin);
  gemm_group& group = judged.group;
  group.first_row = begin;
  group.a = problem.a.address + begin * problem.a.pitch_bytes;
  group.c = problem.c.address + begin * problem.c.pitch_bytes;
  group.a_pitch = problem.a.pitch_bytes;
  group.c_pitch = problem.c.pitch_bytes;
  group.m = static_cast<std::uint32_t>(range.end - range.begin);
  group.n = static_cast<std::uint32_t>(problem.n);
  group.k = static_cast<std::uint32_t>(problem.k);
  return judged;
}

__device__ inline judged_group group_of(const gemm::weight_problem& problem, const row_range& range, std::uint32_t bits,
                                        std::uint32_t g) {
  judged_group judged{};
  judged.bits = bits;
  judged.has_work = bits == 0 || bits == gemm::group_status::empty_bit;
  if (!judged.has_work) return judged;
  const std::uint64_t begin = bits == 0 ? static_cast<std::uint64_t>(range.begin) : 0;
  gemm_group& group = judged.group;
  group.a = problem.a.address + begin * problem.a.pitch_bytes;
  group.b = problem.b.address + begin * problem.b.pitch_bytes;
  group.c = problem.c.address + g * problem.c_group_pitch_bytes;
  group.a_pitch = problem.a.pitch_bytes;
  group.b_pitch = problem.b.pitch_bytes;
  group.c_pitch = problem.c.pitch_bytes;
  group.m = static_cast<std::uint32_t>(problem.m);
  group.n = static_cast<std::uint32_t>(problem.n);
  group.k = static_cast<std::uint32_t>(range.end - range.begin);
  return judged;
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
  for (const std::int64_t columns : {n, k}) {
    const bool is_good = is_extent(columns) && static_cast<std::uint64_t>(columns) * bytes % unit == 0;
    if (!is_good) judged.bits |= static_cast<std::uint32_t>(gemm::fault::extent);
  }
  const bool is_empty = judged.bits == 0 && (m == 0 || n == 0 || k == 0);
  const bool has_extents = judged.bits == 0;
  const bool is_along = problem.layout == gemm::b_layout::n_by_k;
  const auto judge = [&](std::uint64_t address, std::int64_t pitch, std::int64_t rows, std::int64_t columns) {
    if (!has_extents) rows = columns = 0;
    return judge_matrix(address, static_cast<std::uint64_t>(pitch), static_cast<std::uint64_t>(rows),
                        static_cast<std::uint64_t>(columns) * bytes);
  };
  const std::uint32_t c_bits = judge(problem.c[g], problem.c_pitch_bytes[g], m, n);
  if (is_empty) {
    judged.bits = gemm::group_status::empty_bit;
    judged.has_work = m != 0 && n != 0 && c_bits == 0;
  } else {
    judged.bits |= c_bits | judge(problem.a[g], problem.a_pitch_bytes[g], m, k) |
                   judge(problem.b[g], problem.b_pitch_bytes[g], is_along ? n : k, is_along ? k : n);
    judged.has_work = judged.bits == 0;
  }
  if (!judged.has_work) return judged;
  judged.group = {0,
                  problem.a[g],
                  problem.b[g],
                  problem.c[g],
                  static_cast<std::uint64_t>(problem.a_pitch_bytes[g]),
                  static_cast<std::uint64_t>(problem.b_pitch_bytes[g]),
                  static_cast<std::uint64_t>(problem.c_pitch_bytes[g]),
                  static_cast<std::uint32_t>(m),
                  static_cast<std::uint32_t>(n),
                  static_cast<std::uint32_t>(k),
                  0};
  return judged;
}

/// All threads call these, those without a group too.
__device__ inline judged_group judge_group(const gemm::pointer_problem& problem, std::uint32_t g, carried&) {
  return g < problem.groups ? pointer_group(problem, g) : judged_group{};
}
template <class Problem>
__device__ judged_group judge_group(const Problem& problem, std::uint32_t g, carried& sums) {
  const bool has_group = g < problem.groups;
  const row_range range = read_rows(problem.offsets, g, has_group, sums);
  const std::int64_t latest = join_before_thread<set_up_warps>(has_group ? range.end : 0, sums.latest, larger{});
  if (!has_group) return {};
  return group_of(problem, range, judge_rows(range, latest, problem.rows), g);
}

template <class Problem>
__device__ std::uint32_t result_columns(const Problem& problem, const gemm_group& group) {
  return has_gates(problem) ? group.n / 2 : group.n;
}

template <class Problem>
__device__ std::int64_t tiles_of(const set_up_request<Problem>& request, const judged_group& judged) {
  if (!judged.has_work) return 0;
  // Extents are at most 2^31.
  const std::uint64_t rows = (judged.group.m + request.tile.m - 1) / request.tile.m;
  const std::uint64_t columns =
      (result_columns(request.problem, judged.group) + request.tile.result_n - 1) / request.tile.result_n;
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

enum operand : std::uint32_t { c, a, b };

template <class Problem>
__device__ bool has_b_along_k(const Problem& problem) {
  if constexpr (std::is_same_v<Problem, gemm::pointer_problem>) {
    return problem.layout == gemm::b_layout::n_by_k;
  } else {
    return false;
  }
}

/// Returns the patch of one operand's map. For a group without work, or an operand with nothing to
/// sum over, the patch makes the safe empty map.
template <class Problem>
__device__ map_patch patch_of(const Problem& problem, const gemm_group& group, std::uint32_t of) {
  constexpr bool is_a_across = std::is_same_v<Problem, gemm::weight_problem>;
  if (of == c) return patch_of(group.c, result_columns(problem, group), group.m, group.c_pitch);
  if (of == a) {
    return is_a_across ? patch_of(group.a, group.m, group.k, group.a_pitch)
                       : patch_of(group.a, group.k, group.m, group.a_pitch);
  }
  return has_b_along_k(problem) ? patch_of(group.b, group.k, group.n, group.b_pitch)
                                : patch_of(group.b, group.n, group.k, group.b_pitch);
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
  constexpr std::uint32_t operands = set_up_operands<Problem>;
  TMAP_KEEP_ROLLED
  for (std::uint32_t of = c; of < operands; ++of) {
    if (!mine.has(first / set_up_threads * operands + of)) continue;
    tensor_map* const slots = of == c ? request.scratch.c : of == a ? request.scratch.a : request.scratch.b;
    device::warp_encoder encoder(of == c ? maps.c : of == a ? maps.a : maps.b, stage, map_shape{});
    encoder.compose([&](std::uint64_t) { return patch_of(request.problem, judged.group, of); }, first, count, guard);
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
    const detail::judged_group judged = detail::judge_group(request.problem, g, sums);
    const std::int64_t tiles = detail::tiles_of(request, judged);
    const std::int64_t before = join_before_thread<set_up_warps>(tiles, sums.tiles, add{});
    if (is_first) detail::report(request, g, judged.bits, shared.header);
    if (mine.has(first / set_up_threads * set_up_operands<Problem>) && g < groups) {
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
