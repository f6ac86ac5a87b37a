// SPDX-License-Identifier: Apache-2.0
#pragma once

// Brings the sums of a combine home. Blocks are of two kinds:
//
// - *Senders* add up the results of records that came from other ranks, store the sums in the
//   windows of these, and count the units that they have stored. They never wait.
// - *Takers* add up this rank's tokens: the results that are here, and sums as they come.
//
// A sum lies in a *place* of its own at home, and the word that counts its units follows it. Nobody
// clears that word: with the record, home keeps what it was.

#include <tmap/detail/peer_barrier.hpp>

#include "kernels/peer/row_piece.hpp"

namespace tmap::kernels::peer {

using namespace tmap::detail::peer;

/// Lays out the place of a sum: its bytes, the word that counts its units, and what that word was
/// when the record left. Places begin at full lines of memory.
struct sum_place {
  std::uint32_t bytes;  ///< of a sum, a multiple of `bulk_unit`; 0: no sums come home

  [[nodiscard]] TMAP_HOST_DEVICE constexpr std::uint32_t units() const { return bytes / bulk_unit; }
  [[nodiscard]] TMAP_HOST_DEVICE constexpr std::uint32_t counter() const { return bytes; }
  [[nodiscard]] TMAP_HOST_DEVICE constexpr std::uint32_t count_before() const { return bytes + 4; }
  [[nodiscard]] TMAP_HOST_DEVICE constexpr std::uint32_t end() const { return bytes + 8; }
  /// Returns the bytes from one place to the next.
  [[nodiscard]] TMAP_HOST_DEVICE constexpr std::uint32_t pitch() const { return (end() + 127) / 128 * 128; }
};

/// Describes a combine of sums. Offsets are bytes of the own window.
struct sums_request {
  std::uint64_t outcome;  ///< word: the verdict of the dispatch
  std::uint64_t total;    ///< word: how many records came, whose sums leave
  std::uint32_t shape;    ///< that of the combine, which the verdict must name
  std::uint32_t blocks;   ///< of both kinds
  sum_place place;
};

/// Returns how many units have ever come to a place. The record that leaves for more carries the
/// number: so none of them can have come before.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t count_of(Link& link, const sum_place& place, std::uint64_t at) {
  return link.load(link.rank(), at + place.counter());
}
/// Keeps that number, for the combine.
template <class Link>
TMAP_HOST_DEVICE void keep_count(Link& link, const sum_place& place, std::uint64_t at, std::uint32_t count) {
  link.store(link.rank(), at + place.count_before(), count);
}

/// Counts units that have been stored in a place, as this thread knew at its last `release`.
/// `address` is that of the place, as `link.address`.
template <class Link>
TMAP_HOST_DEVICE void count_units(Link& link, const sum_place& place, std::uint64_t address, std::uint32_t units) {
  link.raise_released_at(address + place.counter(), units);
}

/// Waits until all units of a sum are in their place of the own window. Returns whether they came
/// from `source` by the deadline.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool await_sum(Link& link, const sum_place& place, std::uint64_t at,
                                              std::uint32_t source, std::uint64_t deadline) {
  const std::uint32_t before = link.load(link.rank(), at + place.count_before());
  if (await(link, at + place.counter(), before + place.units(), deadline)) return true;
  static_cast<void>(give_up_waiting(link, source, protocol_step::sums));
  return false;
}

/// Waits until all ranks have begun their combines: then they have pulled what this rank sent, and
/// `out` may be there. One thread of each block of takers calls it, after one of them has called
/// `come_to_barrier`. Returns whether all have.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE bool await_combines(Link& link, std::uint64_t deadline) {
  const std::uint32_t epoch = link.load(link.rank(), offsetof(window_header, barriers)) + 1;
  return await_barrier(link, epoch, deadline).status == peer_status::ok;
}

/// Ends the combine for this rank, whose blocks have all ended.
///
/// The next combine finds no dispatch, and stores no sums: another rank may be adding up these
/// while this one begins it. The next dispatch waits for all ranks, and so for the end of their
/// combines.
template <class Link>
TMAP_HOST_DEVICE void end_all_sums(Link& link, const sums_request& request) {
  const std::uint32_t me = link.rank(), epoch = link.load(me, offsetof(window_header, barriers)) + 1;
  const peer_verdict ended = is_broken(link) ? peer_verdict{peer_status::broken} : peer_verdict{};
  link.store(me, offsetof(window_header, barriers), epoch);
  link.store(me, offsetof(window_header, pieces_dealt), 0);
  const bool is_over = ended.status != peer_status::ok;
  link.store(me, request.outcome, word_of(is_over ? ended : peer_verdict{peer_status::no_dispatch}));
  link.store(me, request.total, 0);
  report(link, ended);
}

/// Ends the combine for a block. One thread calls it, after all others of the block have done
/// their work. `dispatched` is the outcome of the dispatch: without a success no rank stores sums,
/// and the combine ends as it did. A combine of another shape, whose sums would lie elsewhere,
/// finds no dispatch.
template <class Link>
TMAP_HOST_DEVICE void end_sums(Link& link, const sums_request& request, const peer_verdict& dispatched) {
  const std::uint64_t ended = offsetof(window_header, blocks_ended);
  if (link.count_here(ended) + 1 != request.blocks) return;
  link.store(link.rank(), ended, 0);
  if (dispatched.status != peer_status::ok) {
    report(link, dispatched);
  } else {
    end_all_sums(link, request);
  }
}

}  // namespace tmap::kernels::peer
