// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends and takes eager rows (eager_area.hpp), by threads that share their packets.

#include "kernels/peer/protocol_plan.hpp"

namespace tmap::kernels::peer {

/// Stands for no rank.
inline constexpr std::uint32_t no_rank = ~0u;

/// So many packets of a thread are on their way at once.
inline constexpr std::uint32_t packets_at_once = 2;

/// Finds the words of packets in rows at equal distances.
class packed_rows {
 public:
  TMAP_HOST_DEVICE packed_rows(std::uint64_t at, std::uint64_t step, std::uint32_t row_bytes)
      : at_(at), step_(step), row_bytes_(row_bytes), packets_(row_packets(row_bytes)) {}

  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t packets(std::uint32_t rows) const { return rows * packets_; }
  /// Calls `use(word, offset)` for the words of packet `i`.
  template <class Use>
  TMAP_HOST_DEVICE void each_word(std::uint32_t i, const Use& use) const {
    constexpr auto packet_bytes = packet_words * static_cast<std::uint32_t>(word_bytes);
    const std::uint32_t row = i / packets_, first = (i - row * packets_) * packet_bytes;
    for (std::uint32_t word = 0; word < packet_words; ++word) {
      const std::uint32_t at = first + word * static_cast<std::uint32_t>(word_bytes);
      if (at < row_bytes_) use(word, at_ + row * step_ + at);
    }
  }

 private:
  std::uint64_t at_;
  std::uint64_t step_;
  std::uint32_t row_bytes_;
  std::uint32_t packets_;  ///< of a row
};

/// Is the gate of a worker that may send for call number `call`. It sends its share of the slot
/// first.
template <class Link>
class open_gate {
 public:
  TMAP_HOST_DEVICE open_gate(Link& link, std::uint32_t call, bool is_pulled, const worker& mine) : call_(call) {
    send_slot(link, link.rank(), call, is_pulled, mine);
  }
  TMAP_HOST_DEVICE bool pass() const { return true; }
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t call() const { return call_; }

 private:
  std::uint32_t call_;
};

/// Sends packets of rows to one rank.
template <class Link, class Gate>
struct sent_packets {
  Link& link;
  Gate& gate;
  packed_rows rows;
  std::uint32_t to;

  [[nodiscard]] TMAP_HOST_DEVICE packet load(std::uint32_t i) const {
    packet made{};
    rows.each_word(i, [&](std::uint32_t word, std::uint64_t at) { made.words[word] = link.load_row_word(at); });
    return made;
  }
  TMAP_HOST_DEVICE void use(std::uint32_t i, packet made) const {
    if (!gate.pass()) return;
    made.tag = tag_of(gate.call());
    link.send(to, eager_packet_at(link.ranks(), link.rank(), i), made);
  }
};

/// Sends this worker's share of the eager rows for all ranks. It loads the first ones, and then
/// passes `gate`, which returns whether it may send: this rank then has everybody's credit for the
/// calls before. The worker passes it at least once.
template <class Link, class Gate>
TMAP_HOST_DEVICE void send_rows(Link& link, const exchange_request& request, const word_worker& mine, Gate& gate) {
  const std::uint64_t step = row_step(request.sent_pitch, request.row_bytes);
  const auto rows_for = [&](std::uint32_t rank) { return link.load(link.rank(), word_at(request.splits, rank)); };
  const auto rows_before = [&](std::uint32_t end) {
    std::uint64_t rows = 0;
    TMAP_KEEP_ROLLED
    for (std::uint32_t rank = 0; rank < end; ++rank) rows += rows_for(rank);
    return rows;
  };
  const bool has_rows = request.is_eager && rows_before(link.ranks()) <= request.sent_rows;
  const auto has_work = [&](std::uint32_t to) {
    const std::uint32_t rows = rows_for(to);
    return has_rows && rows != 0 && are_eager(link.ranks(), rows, request.row_bytes);
  };
  share_by_warps(mine, link.ranks(), has_work, [&](std::uint32_t to, const worker& own) {
    const packed_rows sent(request.rows + rows_before(to) * step, step, request.row_bytes);
    share_field<packets_at_once>(own, sent.packets(rows_for(to)), sent_packets<Link, Gate>{link, gate, sent, to});
  });
  static_cast<void>(gate.pass());  // also without rows
}

/// Waits for the packets that a source sent for a call.
template <class Link>
struct coming_packets {
  Link& link;
  std::uint32_t source;
  std::uint32_t call;
  std::uint64_t deadline;

  /// Returns whether packet `i` and, if there are two, the one `step` after it came by the deadline
  /// and before the group broke.
  [[nodiscard]] TMAP_HOST_DEVICE bool fetch(std::uint32_t i, std::uint32_t step, std::uint32_t count,
                                            packet (&found)[packets_at_once]) const {
    return link.await_packets(eager_packet_at(link.ranks(), source, i), step, count, tag_of(call), found, deadline,
                              offsetof(window_header, broken));
  }
};

/// Takes this worker's share of the packets from `begin` to `end`: `from` fetches them, and
/// `use(i, packet)` gets each. Returns whether all came.
template <class From, class Use>
[[nodiscard]] TMAP_HOST_DEVICE bool take_packets(const worker& mine, std::uint32_t begin, std::uint32_t end,
                                                 const From& from, const Use& use) {
  static_assert(packets_at_once == 2);
  const auto step = static_cast<std::uint32_t>(mine.count);
  TMAP_KEEP_ROLLED
  for (auto first = begin + static_cast<std::uint32_t>(mine.number); first < end; first += packets_at_once * step) {
    const std::uint32_t count = first + step < end ? packets_at_once : 1;
    packet found[packets_at_once];
    if (!from.fetch(first, step, count, found)) return false;
    TMAP_KEEP_ROLLED
    for (std::uint32_t j = 0; j < count; ++j) use(first + j * step, j == 0 ? found[0] : found[1]);
  }
  return true;
}

/// Takes this worker's share of the eager rows of all ranks, once they are announced and judged,
/// and writes its share of the counts. Returns a rank whose rows did not come by the deadline, or
/// before the group broke.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t take_rows(Link& link, const exchange_request& request, std::uint32_t call,
                                                       std::uint64_t deadline, const word_worker& mine) {
  const announcements<Link> announced(link, request);
  const std::uint64_t step = row_step(request.out_pitch, request.row_bytes);
  std::uint32_t late = no_rank;
  write_out_splits(link, request, mine.thread());
  const auto has_work = [&](std::uint32_t source) {
    return late == no_rank && announced.total(source, link.rank()) != 0 && announced.is_eager(source);
  };
  share_by_warps(mine, link.ranks(), has_work, [&](std::uint32_t source, const worker& own) {
    const packed_rows out(request.out + announced.rows_of_ranks(source) * step, step, request.row_bytes);
    const auto store = [&](std::uint32_t i, const packet& found) {
      out.each_word(i, [&](std::uint32_t word, std::uint64_t at) { link.store_row_word(at, found.words[word]); });
    };
    const std::uint32_t packets = out.packets(announced.total(source, link.rank()));
    if (!take_packets(own, 0, packets, coming_packets<Link>{link, source, call, deadline}, store)) late = source;
  });
  return late;
}

}  // namespace tmap::kernels::peer
