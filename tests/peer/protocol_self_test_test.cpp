// SPDX-License-Identifier: Apache-2.0
// Runs the self-test of a group over the model, and over links with faults that it must see.
#include <tmap/validate.hpp>

#include <gtest/gtest.h>

#include "kernels/peer/map_test_area.hpp"
#include "kernels/peer/protocol_self_test.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t test_deadline = 100;

/// Returns a program in which all ranks test each other a number of times.
template <class Link>
ranks::program self_tests(std::uint32_t rank_count, std::uint32_t times) {
  ranks::program made;
  made.ranks = rank_count;
  for (std::uint32_t rank = 0; rank < rank_count; ++rank) {
    made.threads.push_back({rank, rank, [times](ranks::model_link& sound) {
                              Link link(sound);
                              for (std::uint32_t i = 0; i < times; ++i) {
                                const peer_verdict found = kernels::peer::self_test(link, 16, test_deadline);
                                link.end_kernel();
                                link.expect(found.status == peer_status::ok, "the self-test passes");
                              }
                            }});
  }
  return made;
}

TEST(protocol_self_test, passes_on_sound_links) {
  expect_at_random(self_tests<ranks::model_link>(1, 2), 50);
  expect_at_random(self_tests<ranks::model_link>(2, 3), 1000);
  expect_at_random(self_tests<ranks::model_link>(4, 2), 100);
}

/// The model does not have tiles, but the maps of the self-test must be legal for each group.
TEST(protocol_self_test, maps_of_every_group_are_legal) {
  for (std::uint32_t count = 1; count <= max_group_ranks; ++count) {
    tensor_spec spec = kernels::peer::map_test_spec(count);
    spec.global_address = kernels::peer::map_test_at + offsetof(kernels::peer::map_test_area, tensor);
    EXPECT_TRUE(validate(spec).empty()) << count;
  }
}

/// Puts into the neighbour of the rank that it should put into.
struct puts_elsewhere : faulty_link {
  using faulty_link::faulty_link;
  void put(std::uint32_t rank, std::uint64_t offset, std::uint32_t from_shared, std::uint32_t bytes) {
    faulty_link::put((rank + 1) % ranks(), offset, from_shared, bytes);
  }
};

TEST(protocol_self_test_faults, a_wrong_address_is_seen) {
  expect_failure_at_random(self_tests<swapped_ranks>(3, 1), "self-test passes");
  expect_failure_at_random(self_tests<off_by_one_row>(2, 1), "self-test passes");
  expect_failure_at_random(self_tests<puts_elsewhere>(3, 1), "self-test passes");
}

TEST(protocol_self_test_faults, a_missing_fence_is_seen) {
  expect_failure_at_random(self_tests<without_quiet>(2, 1), "self-test passes");
  expect_failure_at_random(self_tests<quiet_without_fence>(2, 1), "self-test passes");
  expect_failure_at_random(self_tests<without_proxy_fence>(2, 1), "self-test passes");
}

TEST(protocol_self_test_faults, a_missing_wait_for_gets_is_seen) {
  expect_failure_at_random(self_tests<without_wait_gets>(2, 1), "self-test passes");
}

}  // namespace
}  // namespace tmap::testing
