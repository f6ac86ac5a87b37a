// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets up a grouped product. Each block reads all groups, 256 at a time, judges them and adds up
// their tiles. The blocks share the encoding of the maps.

#include <tmap/config.hpp>
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/map_guard.cuh>
#include <tmap/device/report_bad.cuh>
#include <tmap/device/work_queue.cuh>

#include <cstdint>

#include "kernels/batch/block_header.cuh"
#include "kernels/batch/scan.cuh"
#include "kernels/gemm/judge_group.cuh"
#include "kernels/gemm/set_up.cuh"
#include "kernels/gemm/tile_math.hpp"
#include "kernels/gemm/zero_rest.cuh"

namespace tmap::kernels {

struct set_up_shared {
  device::warp_stage stages[set_up_warps];
  block_header header;
  detail::written_rows written;
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

using map_shape = device::fixed_shape<2, patch_extents(2)>;

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

/// Returns the patch of one operand's map. For a group without work, an operand with nothing to sum
/// over, or C whose rows an index names, the patch makes the safe empty map.
template <class Problem>
__device__ map_patch patch_of(const Problem& problem, const judged_group& judged, operand of) {
  const gemm_group& group = judged.group;
  const operand_places& at = judged.at;
  if (!judged.has_work) return {};
  if (of == operand::c) {
    if (stores_by_index(problem)) return {};
    return patch_of(group.c, first_columns(problem, group.n), group.m, group.c_pitch);
  }
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
    shared.written.reset();
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
    if (zeroes_rest(request.problem)) shared.written.add(judged);
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
  if (zeroes_rest(request.problem)) detail::zero_rest(request.problem, shared.written, mine.block, mine.blocks);
  if (threadIdx.x == 0 && is_first && request.header != nullptr) *request.header = shared.header.value();
}

}  // namespace tmap::kernels
