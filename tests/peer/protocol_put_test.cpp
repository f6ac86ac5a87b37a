// SPDX-License-Identifier: Apache-2.0
// Runs barriers and puts with signals over the model, and with a fault each that it must see.
#include <gtest/gtest.h>

#include <cstdint>

#include <tmap/detail/peer_barrier.hpp>
#include <tmap/detail/peer_put.hpp>
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"

namespace tmap::testing {
namespace {

using ranks::model_link;
using ranks::program;

constexpr std::uint64_t inbox = peer_header_bytes;
constexpr std::uint64_t put_deadline = 100;

/// Returns a program in which each rank runs a body over a link of the type.
template <class Link, class Body>
program on_all_ranks(std::uint32_t rank_count, Body body) {
  program made;
  made.ranks = rank_count;
  for (std::uint32_t rank = 0; rank < rank_count; ++rank) {
    made.threads.push_back({rank, rank, [body](model_link& given) {
                              Link link(given);
                              body(link);
                            }});
  }
  return made;
}

/// Each rank stores the number of the round into its neighbour before each barrier, and reads what
/// it got after it. A second barrier keeps rounds apart.
template <class Link>
program barriers(std::uint32_t rank_count, std::uint32_t rounds) {
  return on_all_ranks<Link>(rank_count, [rounds](Link& link) {
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      link.store((link.rank() + 1) % link.ranks(), inbox, round);
      link.expect(detail::peer::barrier(link, put_deadline).status == peer_status::ok, "the barrier ends");
      link.expect(link.load(link.rank(), inbox) == round, "the neighbour's store is there");
      if (round == rounds) return;
      link.expect(detail::peer::barrier(link, put_deadline).status == peer_status::ok, "the barrier ends");
    }
  });
}

TEST(protocol_barrier, two_ranks_meet_in_every_execution) {
  expect_always(barriers<model_link>(2, 2));
}
TEST(protocol_barrier, three_ranks_meet_in_every_execution) {
  expect_always(barriers<model_link>(3, 1));
}
TEST(protocol_barrier, four_ranks_meet_many_times) {
  expect_at_random(barriers<model_link>(4, 4), 300);
}

TEST(protocol_barrier, counters_wrap_around) {
  program late = barriers<model_link>(2, 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    late.initial.push_back({rank, offsetof(window_header, barriers), ~0u - 1});
    for (std::uint32_t peer = 0; peer < 2; ++peer) {
      late.initial.push_back({rank, word_at(offsetof(window_header, barrier_raised), peer), ~0u - 1});
    }
  }
  expect_always(late);
}

TEST(protocol_barrier, a_rank_that_gives_up_breaks_the_group_at_all_ranks) {
  expect_always(on_all_ranks<model_link>(2, [](model_link& link) {
    if (link.rank() == 0) {
      const peer_verdict late = detail::peer::barrier(link, put_deadline);
      link.expect(late.status == peer_status::timeout && late.peer == 1, "the late rank is named");
    } else {
      link.expect(link.wait(offsetof(window_header, broken), 1, ranks::never), "the group is broken");
      link.expect(detail::peer::barrier(link, put_deadline).status == peer_status::broken, "the next call ends");
    }
  }));
}

/// Rank 1 never comes. Rank 0 finds out, and rank 2, which has no deadline, must learn it.
TEST(protocol_barrier, a_wait_ends_when_another_rank_gives_up) {
  expect_always(on_all_ranks<model_link>(3, [](model_link& link) {
    if (link.rank() == 1) return;
    const bool finds_out = link.rank() == 0;
    const peer_verdict ended = detail::peer::barrier(link, finds_out ? put_deadline : ranks::never);
    link.expect(ended.status == (finds_out ? peer_status::timeout : peer_status::broken), "the barrier ends");
  }));
}

/// Returns the verdict that rank `link.rank()` has in a word of its window.
peer_verdict own_verdict(model_link& link, std::uint64_t word) {
  return detail::peer::verdict_of(link.load(link.rank(), word));
}

TEST(protocol_barrier, the_window_names_the_late_rank_also_after_later_calls) {
  expect_always(on_all_ranks<model_link>(2, [](model_link& link) {
    if (link.rank() == 1) return;
    for (const peer_status status : {peer_status::timeout, peer_status::broken}) {
      link.expect(detail::peer::barrier(link, put_deadline).status == status, "the barrier ends");
      link.expect(own_verdict(link, offsetof(window_header, verdict)).status == status, "the window has the verdict");
      const peer_verdict fault = own_verdict(link, offsetof(window_header, fault));
      link.expect(fault.status == peer_status::timeout && fault.peer == 1 && fault.step == protocol_step::barrier,
                  "the window names the late rank");
    }
  }));
}

TEST(protocol_barrier_faults, a_relaxed_wait_is_seen) {
  expect_failure(barriers<wait_relaxed>(2, 1), "store is there");
}
TEST(protocol_barrier_faults, a_relaxed_raise_is_seen) {
  expect_failure(barriers<raise_relaxed>(2, 1), "store is there");
}
TEST(protocol_barrier_faults, a_rank_left_out_is_seen) {
  expect_failure_at_random(barriers<barrier_of_the_others>(3, 1), "store is there");
}
TEST(protocol_barrier_faults, an_epoch_not_raised_is_seen) {
  expect_failure_at_random(barriers<epoch_not_raised<offsetof(window_header, barriers)>>(2, 2), "store is there");
}

/// Rank 0 puts pieces into one place of rank 1, which reads each by a bulk copy or by loads.
template <class Link>
program puts(std::uint32_t pieces, bool reads_by_get) {
  return on_all_ranks<Link>(2, [pieces, reads_by_get](Link& link) {
    for (std::uint32_t number = 1; number <= pieces; ++number) {
      if (link.rank() == 0) {
        link.store_shared(0, number);
        link.proxy_fence();
        link.expect(detail::peer::put_and_raise(link, 1, inbox, 0, 4, put_deadline).status == peer_status::ok,
                    "the put ends");
        continue;
      }
      link.expect(detail::peer::take_put(link, 0, put_deadline).status == peer_status::ok, "the put comes");
      if (reads_by_get) {
        link.get(0, 1, inbox, 4);
        link.wait_gets();
      }
      link.expect((reads_by_get ? link.load_shared(0) : link.load(1, inbox)) == number, "the piece is the next");
      detail::peer::return_put(link, 0);
    }
  });
}

TEST(protocol_put, pieces_come_in_turn_in_every_execution) {
  expect_always(puts<model_link>(3, false));
  expect_always(puts<model_link>(3, true));
}

template <class Link>
void expect_put_fault_seen(bool reads_by_get = false) {
  expect_failure(puts<Link>(2, reads_by_get), "the piece is the next");
}

TEST(protocol_put_faults, a_missing_quiet_is_seen) {
  expect_put_fault_seen<without_quiet>();
}
TEST(protocol_put_faults, a_flush_for_quiet_is_seen) {
  expect_put_fault_seen<flush_for_quiet>();
}
TEST(protocol_put_faults, a_quiet_without_its_fence_is_seen) {
  expect_put_fault_seen<quiet_without_fence>();
}
TEST(protocol_put_faults, a_relaxed_wait_is_seen) {
  expect_put_fault_seen<wait_relaxed>();
}
TEST(protocol_put_faults, a_relaxed_raise_is_seen) {
  expect_put_fault_seen<raise_relaxed>();
}
TEST(protocol_put_faults, a_missing_proxy_fence_is_seen) {
  expect_put_fault_seen<without_proxy_fence>(true);
}
TEST(protocol_put_faults, a_piece_overwritten_before_its_return_is_seen) {
  expect_put_fault_seen<without_return>();
}
TEST(protocol_put_faults, an_epoch_of_taken_pieces_not_raised_is_seen) {
  expect_put_fault_seen<epoch_not_raised<offsetof(window_header, puts_taken)>>();
}

}  // namespace
}  // namespace tmap::testing
