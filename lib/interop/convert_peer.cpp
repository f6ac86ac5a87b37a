// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstring>

#include "lib/interop/convert.hpp"

namespace tmap::interop {
namespace {

static_assert(mirrors(TMAP_RANK_MAJOR, row_placement::rank_major));
static_assert(mirrors(TMAP_GROUP_MAJOR, row_placement::group_major));
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

peer_start library_of(const tmap_peer_start& start) {
  peer_start made{.rank = start.rank, .ranks = start.ranks};
  copy(start.id.bytes, made.id.bytes);
  if (start.id_file != nullptr) made.id_file = start.id_file;
  made.run = start.run;
  made.patience = patience_of(start.patience_ms, made.patience);
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
          .placed = static_cast<row_placement>(problem.placed)};
}

tmap_peer_id c_of(const peer_id& id) {
  tmap_peer_id made{};
  copy(id.bytes, made.bytes);
  return made;
}

}  // namespace tmap::interop
