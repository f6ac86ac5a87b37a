// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstring>

#include "lib/interop/convert.hpp"

namespace tmap::interop {
namespace {

static_assert(mirrors(TMAP_RANK_MAJOR, row_placement::rank_major));
static_assert(mirrors(TMAP_GROUP_MAJOR, row_placement::group_major));
static_assert(mirrors(TMAP_RETURN_SUMS, expert_parallel::return_kind::sums));
static_assert(mirrors(TMAP_RETURN_ROWS, expert_parallel::return_kind::rows));
static_assert(TMAP_MAX_GROUP_RANKS == max_group_ranks && TMAP_PEER_HEADER_BYTES == peer_header_bytes);
static_assert(sizeof(tmap_peer_id) == sizeof(peer_id));

// Kernels take the library's struct.
static_assert(sizeof(tmap_peer_memory_ref) == sizeof(peer_memory_ref));
static_assert(offsetof(tmap_peer_memory_ref, bytes) == offsetof(peer_memory_ref, bytes));
static_assert(offsetof(tmap_peer_memory_ref, rank) == offsetof(peer_memory_ref, rank));
static_assert(offsetof(tmap_peer_memory_ref, ranks) == offsetof(peer_memory_ref, ranks));

}  // namespace

std::chrono::milliseconds patience_of(std::uint64_t milliseconds, std::chrono::milliseconds otherwise) {
  return milliseconds == 0 ? otherwise : std::chrono::milliseconds{static_cast<std::int64_t>(milliseconds)};
}

void check_members(arguments& all, const tmap_peer_start& start, const support::argument& name) {
  all.enumerator(start.skip_self_test, 1, name.member("skip_self_test"));
}

peer_start library_of(const tmap_peer_start& start) {
  peer_start made{.rank = start.rank, .ranks = start.ranks};
  copy(start.id.bytes, made.id.bytes);
  if (start.id_file != nullptr) made.id_file = start.id_file;
  made.run = start.run;
  made.patience = patience_of(start.patience_ms, made.patience);
  made.self_test = start.skip_self_test == 0;
  return made;
}

exchange_problem library_of(const tmap_exchange_problem& problem) {
  return {.rows = problem.rows,
          .sent_rows = problem.sent_rows,
          .splits = problem.splits,
          .out = problem.out,
          .capacity = problem.capacity,
          .out_splits = problem.out_splits,
          .groups = problem.groups == 0 ? 1 : problem.groups,
          .row_bytes = problem.row_bytes,
          .placed = static_cast<row_placement>(problem.placed),
          .rows_pitch_bytes = problem.rows_pitch_bytes,
          .out_pitch_bytes = problem.out_pitch_bytes};
}

void check_members(arguments& all, const tmap_peer_dispatch_problem& problem, const support::argument& name) {
  all.structure(&problem.sizes, name.member("sizes"));
}

void check_members(arguments& all, const tmap_peer_combine_problem& problem, const support::argument& name) {
  all.structure(&problem.sizes, name.member("sizes"));
}

expert_parallel::shape library_of(const tmap_expert_shape& sizes) {
  return {.tokens = sizes.tokens,
          .k = sizes.k,
          .experts = sizes.experts,
          .arrivals = sizes.arrivals,
          .rows = sizes.rows,
          .alignment = sizes.alignment == 0 ? 1 : sizes.alignment,
          .row_bytes = sizes.row_bytes,
          .scales = sizes.scales,
          .columns = sizes.columns,
          .result_type = static_cast<moe::float_type>(sizes.result_type),
          .returned = static_cast<expert_parallel::return_kind>(sizes.returned)};
}

expert_parallel::dispatch_problem library_of(const tmap_peer_dispatch_problem& problem) {
  return {.sizes = library_of(problem.sizes),
          .x = library_of(problem.x),
          .x_scales = problem.x_scales,
          .x_scale_pitch = problem.x_scale_pitch,
          .ids = problem.ids,
          .weights = problem.weights,
          .out = library_of(problem.out),
          .out_scales = problem.out_scales,
          .counts = problem.counts,
          .begins = problem.begins,
          .ends = problem.ends,
          .weight_of_row = problem.weight_of_row,
          .pending = problem.pending,
          .ready = problem.ready};
}

expert_parallel::combine_problem library_of(const tmap_peer_combine_problem& problem) {
  return {.sizes = library_of(problem.sizes),
          .values = library_of(problem.values),
          .weights = problem.weights,
          .base = library_of(problem.base),
          .out = library_of(problem.out)};
}

tmap_peer_id c_of(const peer_id& id) {
  tmap_peer_id made{};
  copy(id.bytes, made.bytes);
  return made;
}

}  // namespace tmap::interop
