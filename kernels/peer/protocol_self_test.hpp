// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tests the way to every rank and back: a pattern is put into all windows and announced, and each
// rank loads what it got and gets back what it sent. It uses the part of the header that exchanges
// announce in, and leaves zeros there: no packet has come.

#include <tmap/detail/peer_barrier.hpp>

namespace tmap::kernels::peer {

using namespace tmap::detail::peer;

inline constexpr std::uint32_t self_test_bytes = 128;
/// The first byte of a window after the slots of the test.
inline constexpr std::uint64_t self_test_end =
    offsetof(window_header, announcements) + 3 * max_group_ranks * self_test_bytes;

/// Holds one rank's part of a self-test, which one thread runs.
template <class Link>
class self_test_run {
 public:
  TMAP_HOST_DEVICE self_test_run(Link& link, std::uint32_t bytes, std::uint64_t deadline)
      : link_(link), bytes_(bytes), deadline_(deadline) {}

  /// Returns the verdict, which names a rank whose bytes were wrong. A wrong byte ends nothing: the
  /// other ranks still wait for this one.
  TMAP_HOST_DEVICE peer_verdict run() {
    peer_verdict met = barrier(link_, deadline_);  // no rank is in an exchange any more
    if (met.status != peer_status::ok) return met;
    const std::uint32_t salt = link_.load(link_.rank(), offsetof(window_header, barriers));
    send(salt);
    met = barrier(link_, deadline_);
    if (met.status != peer_status::ok) return met;
    take_back();
    const peer_verdict found = judge(salt);
    met = barrier(link_, deadline_);  // all have read
    if (met.status != peer_status::ok) return met;
    clear();
    met = barrier(link_, deadline_);  // no rank announces before all have cleared
    return met.status == peer_status::ok ? found : met;
  }

 private:
  // Three arrays of slots: the pattern of this rank, what each rank sent here, and what each rank
  // has of what this rank sent.
  TMAP_HOST_DEVICE std::uint64_t slot(std::uint32_t array, std::uint32_t rank) const {
    return offsetof(window_header, announcements) + std::uint64_t{array * max_group_ranks + rank} * bytes_;
  }
  static TMAP_HOST_DEVICE std::uint32_t pattern(std::uint32_t rank, std::uint32_t salt, std::uint64_t word) {
    return (rank + 1) * 0x9E3779B1u ^ salt * 0x85EBCA77u ^ static_cast<std::uint32_t>(word);
  }

  TMAP_HOST_DEVICE void send(std::uint32_t salt) {
    const std::uint32_t me = link_.rank();
    for (std::uint64_t word = 0; word < bytes_ / word_bytes; ++word) {
      link_.store(me, word_at(slot(0, 0), word), pattern(me, salt, word));
    }
    link_.proxy_fence();
    link_.get(0, me, slot(0, 0), bytes_);
    link_.wait_gets();
    for (std::uint32_t i = 0; i < link_.ranks(); ++i) link_.put(rank_in_turn(link_, i), slot(1, me), 0, bytes_);
    link_.flush();
  }

  TMAP_HOST_DEVICE void clear() {
    for (std::uint32_t array = 0; array < 3; ++array) {
      for (std::uint32_t rank = 0; rank < link_.ranks(); ++rank) {
        for (std::uint64_t word = 0; word < bytes_ / word_bytes; ++word) {
          link_.store(link_.rank(), word_at(slot(array, rank), word), 0);
        }
      }
    }
  }

  TMAP_HOST_DEVICE void take_back() {
    const std::uint32_t me = link_.rank();
    for (std::uint32_t i = 0; i < link_.ranks(); ++i) {
      const std::uint32_t peer = rank_in_turn(link_, i);
      link_.get(0, peer, slot(1, me), bytes_);
      link_.wait_gets();
      link_.put(me, slot(2, peer), 0, bytes_);
      link_.flush();
    }
    link_.quiet();
  }

  TMAP_HOST_DEVICE peer_verdict judge(std::uint32_t salt) const {
    const std::uint32_t me = link_.rank();
    for (std::uint32_t peer = 0; peer < link_.ranks(); ++peer) {
      for (std::uint64_t word = 0; word < bytes_ / word_bytes; ++word) {
        const bool came = link_.load(me, word_at(slot(1, peer), word)) == pattern(peer, salt, word);
        const bool came_back = link_.load(me, word_at(slot(2, peer), word)) == pattern(me, salt, word);
        if (!came || !came_back) return {peer_status::wrong_bytes, peer, protocol_step::none};
      }
    }
    return {};
  }

  Link& link_;
  std::uint32_t bytes_;
  std::uint64_t deadline_;
};

/// Tests the way to every rank and back. All ranks call it. `bytes` of shared memory are used, a
/// multiple of 16 and at most `self_test_bytes`.
template <class Link>
TMAP_HOST_DEVICE peer_verdict self_test(Link& link, std::uint32_t bytes, std::uint64_t deadline) {
  return report(link, self_test_run<Link>(link, bytes, deadline).run());
}
static_assert(self_test_end <= offsetof(window_header, eager));

}  // namespace tmap::kernels::peer
