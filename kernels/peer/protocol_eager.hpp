// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends and takes eager rows (eager_area.hpp), by threads that share their packets.

#include "kernels/peer/protocol_plan.hpp"

namespace tmap::kernels::peer {

/// Stands for no rank.
inline constexpr std::uint32_t no_rank = ~0u;

/// So many packets of a thread are on their way at once: of records, and of rows.
inline constexpr std::uint32_t packets_at_once = 2, row_packets_at_once = 3;

/// Names the words of a row that a packet holds.
struct packed_words {
  std::uint32_t row;
  std::uint32_t byte;   ///< of the row, where they begin
  std::uint32_t words;  ///< at most those of a packet
};

/// Knows how rows of so many bytes lie in packets: each begins with a new one.
class row_packing {
 public:
  explicit TMAP_HOST_DEVICE constexpr row_packing(std::uint32_t row_bytes)
      : row_bytes_(row_bytes), packets_(row_packets(row_bytes)), inverse_(packets_ == 0 ? 0 : ~0u / packets_ + 1) {}

  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t packets_of_rows(std::uint32_t rows) const { return rows * packets_; }
  /// Returns which words of eager rows packet `i` holds.
  [[nodiscard]] TMAP_HOST_DEVICE packed_words words_of(std::uint32_t i) const {
    constexpr auto bytes = packet_words * static_cast<std::uint32_t>(word_bytes);
    const std::uint32_t row = row_of(i), byte = (i - row * packets_) * bytes;
    const std::uint32_t words = (row_bytes_ - byte) / static_cast<std::uint32_t>(word_bytes);
    return {row, byte, words < packet_words ? words : packet_words};
  }

 private:
  /// Divides by the packets of a row. The product of the two is less than 2^32, so this is exact.
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t row_of(std::uint32_t i) const {
    return packets_ == 1 ? i : static_cast<std::uint32_t>(std::uint64_t{i} * inverse_ >> 32);
  }

  std::uint32_t row_bytes_;
  std::uint32_t packets_;  ///< of a row
  std::uint32_t inverse_;  ///< 2^32 / packets_, rounded up
};

/// Counts what this rank sends, in one group.
struct sent_rows {
  std::uint64_t all{0};
  std::uint64_t before{0};  ///< for the ranks before some rank
  std::uint32_t own{0};     ///< for that rank
  std::uint32_t most{0};    ///< for one rank
};
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE sent_rows count_sent(Link& link, const exchange_request& request, std::uint32_t to) {
  sent_rows counted;
  TMAP_KEEP_ROLLED
  for (std::uint32_t rank = 0; rank < link.ranks(); ++rank) {
    const std::uint32_t rows = link.load(link.rank(), word_at(request.splits, rank));
    counted.all += rows;
    counted.before += rank < to ? rows : 0;
    counted.own = rank == to ? rows : counted.own;
    counted.most = rows > counted.most ? rows : counted.most;
  }
  return counted;
}

/// Sends this thread's share of the eager rows. It loads the first ones, and then calls
/// `may_send(is_pulled)`, once, as all threads of the block do: it returns whether rows may go out.
/// Others pull some rows unless all are eager. Returns what it returned.
template <class Link, class MaySend>
TMAP_HOST_DEVICE bool send_rows(Link& link, const exchange_request& request, std::uint32_t call,
                                const row_packing& packing, const dealt_items& ranks, const MaySend& may_send) {
  const std::uint64_t step = row_step(request.sent_pitch, request.row_bytes);
  const std::uint64_t area = eager_packet_at(link.ranks(), link.rank(), 0);
  const auto own_step = static_cast<std::uint32_t>(ranks.own.count);
  const auto may_be_eager = [&](std::uint32_t rows) {
    return request.is_eager && are_eager(link.ranks(), rows, request.row_bytes);
  };
  bool has_asked = false;
  TMAP_KEEP_ROLLED
  for (std::uint32_t to = ranks.first; to < link.ranks(); to += ranks.step) {
    const sent_rows sent = request.is_eager ? count_sent(link, request, to) : sent_rows{};
    const bool has_rows = sent.all <= request.sent_rows;
    const std::uint32_t packets = has_rows && may_be_eager(sent.own) ? packing.packets_of_rows(sent.own) : 0;
    const std::uint64_t rows = request.rows + sent.before * step;
    auto i = static_cast<std::uint32_t>(ranks.own.number);
    TMAP_KEEP_ROLLED
    do {
      packet made[row_packets_at_once];
      for (std::uint32_t j = 0; j < row_packets_at_once; ++j) {
        const packed_words from = packing.words_of(i + j * own_step);
        if (i + j * own_step < packets) {
          made[j] = link.load_row_words(rows + from.row * step + from.byte, from.words);
        }
      }
      if (!has_asked && !may_send(!has_rows || !may_be_eager(sent.most))) return false;
      has_asked = true;
      for (std::uint32_t j = 0; j < row_packets_at_once; ++j, i += own_step) {
        made[j].tag = tag_of(call);
        if (i < packets) link.send(to, area + i * sizeof(packet), made[j]);
      }
    } while (i < packets);
  }
  return true;
}

/// Waits for the packets that a source sent for a call.
template <class Link>
struct coming_packets {
  Link& link;
  std::uint32_t source;
  std::uint32_t call;
  std::uint64_t deadline;

  /// Returns whether so many packets from number `i` on came by the deadline and before the group
  /// broke. Each is `step` after the last one.
  template <std::uint32_t Most>
  [[nodiscard]] TMAP_HOST_DEVICE bool fetch(std::uint32_t i, std::uint32_t step, std::uint32_t count,
                                            packet (&found)[Most]) const {
    return link.await_packets(eager_packet_at(link.ranks(), source, i), step, count, tag_of(call), found, deadline,
                              offsetof(window_header, broken));
  }
  /// Looks for them once. The thread goes on until it uses the result.
  template <std::uint32_t Most>
  [[nodiscard]] TMAP_HOST_DEVICE bool look(std::uint32_t i, std::uint32_t step, std::uint32_t count,
                                           packet (&found)[Most]) const {
    return link.look_packets(eager_packet_at(link.ranks(), source, i), step, count, tag_of(call), found);
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

/// Takes this thread's share of the eager rows of all ranks, once they are announced. It looks for
/// the first ones, and then calls `may_take()`, once, as all threads of the block do: it returns
/// whether rows may move. Returns a rank whose rows did not come by the deadline, or before the
/// group broke.
template <class Link, class MayTake>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t take_rows(Link& link, const exchange_request& request, std::uint32_t call,
                                                       std::uint64_t deadline, const row_packing& packing,
                                                       const dealt_items& sources, const MayTake& may_take) {
  const announcements<Link> announced(link, request);
  const std::uint64_t step = row_step(request.out_pitch, request.row_bytes);
  const auto own_step = static_cast<std::uint32_t>(sources.own.count);
  bool has_asked = false;
  TMAP_KEEP_ROLLED
  for (std::uint32_t source = sources.first; source < link.ranks(); source += sources.step) {
    const coming_packets<Link> coming{link, source, call, deadline};
    const std::uint32_t rows = announced.is_eager(source) ? announced.total(source, link.rank()) : 0;
    const std::uint32_t packets = packing.packets_of_rows(rows);
    const std::uint64_t out = request.out + announced.rows_of_ranks(source) * step;
    auto i = static_cast<std::uint32_t>(sources.own.number);
    TMAP_KEEP_ROLLED
    do {
      std::uint32_t count = 0;
      for (std::uint32_t j = 0; j < row_packets_at_once; ++j) count += i + j * own_step < packets ? 1 : 0;
      packet found[row_packets_at_once];
      bool have_come = coming.look(i, own_step, count, found);
      if (!has_asked && !may_take()) return no_rank;
      has_asked = true;
      have_come = have_come || coming.fetch(i, own_step, count, found);
      if (!have_come) return source;
      for (std::uint32_t j = 0; j < row_packets_at_once; ++j, i += own_step) {
        const packed_words to = packing.words_of(i);
        if (j < count) link.store_row_words(out + to.row * step + to.byte, to.words, found[j]);
      }
    } while (i < packets);
  }
  return no_rank;
}

}  // namespace tmap::kernels::peer
