// SPDX-License-Identifier: Apache-2.0
// Tests how ranks share an id by a file.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "lib/peer/id_file.hpp"
#include "lib/peer/make_group.hpp"
#include "peer/fake_peers.hpp"
#include "support/refusal.hpp"

#include <sys/wait.h>
#include <unistd.h>

namespace tmap::testing {
namespace {

class group_id_file : public ::testing::Test {
 protected:
  group_id_file() : folder{std::filesystem::temp_directory_path() / ("tmap_id_file_" + std::to_string(getpid()))} {
    std::filesystem::create_directory(folder);
  }
  ~group_id_file() override { std::filesystem::remove_all(folder); }

  peer_start start_of(std::uint32_t rank, std::uint64_t run = 7) const {
    return {.rank = rank, .ranks = 2, .id_file = folder / "id", .run = run, .patience = std::chrono::milliseconds{500}};
  }
  static peer_id some_id(std::uint8_t first) {
    peer_id id;
    id.bytes[0] = first;
    id.bytes[127] = 99;
    return id;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{folder}, {}));
  }

  const std::filesystem::path folder;
  fake_peers machine;
};

TEST_F(group_id_file, a_rank_reads_what_rank_0_wrote) {
  ASSERT_TRUE(peer::write_id(start_of(0), some_id(3)).has_value());
  const result<peer_id> read = peer::read_id(start_of(1), fake_peers::calls());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->bytes[0], 3);
  EXPECT_EQ(read->bytes[127], 99);
  EXPECT_EQ(machine.clock, 0u);
  EXPECT_EQ(files(), 1u) << "the draft has the file's name";
}

TEST_F(group_id_file, a_rank_waits_for_rank_0) {
  machine.on_nap = [&] {
    if (machine.clock != 100) return;
    EXPECT_TRUE(peer::write_id(start_of(0), some_id(4)).has_value());
  };
  const result<peer_id> read = peer::read_id(start_of(1), fake_peers::calls());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->bytes[0], 4);
  EXPECT_EQ(machine.clock, 100u);
}

TEST_F(group_id_file, another_process_waits_for_it_and_reads_all_of_it) {
  std::vector<pid_t> children;
  for (std::uint32_t rank = 1; rank <= 3; ++rank) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    peer_start start = start_of(rank);
    start.patience = std::chrono::seconds{30};
    const result<peer_id> read = peer::read_id(start, peer::real_peer_calls());
    _exit(read && read->bytes[0] == 5 && read->bytes[127] == 99 ? 0 : 1);
  }
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(peer::write_id(start_of(0, 6), some_id(1)).has_value());
  EXPECT_TRUE(peer::write_id(start_of(0), some_id(5)).has_value());
  for (const pid_t each : children) {
    int outcome = -1;
    EXPECT_EQ(waitpid(each, &outcome, 0), each);
    EXPECT_EQ(outcome, 0);
  }
}

TEST_F(group_id_file, a_rank_says_what_it_waited_for) {
  const result<peer_group> group = peer::create_group(start_of(1), fake_peers::calls());
  ASSERT_FALSE(group.has_value());
  EXPECT_EQ(group.error().code, status::peer_timeout);
  EXPECT_EQ(to_string(group.error()), "`start.id_file` was not written by rank 0 within 500 ms");
}

TEST_F(group_id_file, a_file_of_an_earlier_run_is_waited_over) {
  ASSERT_TRUE(peer::write_id(start_of(0, 6), some_id(1)).has_value());
  const result<peer_id> alone = peer::read_id(start_of(1), fake_peers::calls());
  ASSERT_FALSE(alone.has_value());
  EXPECT_EQ(to_string(alone.error()),
            "`start.id_file` is a file of another run; rank 0 of run 7 did not write it within 500 ms");
  machine.on_nap = [&] { EXPECT_TRUE(peer::write_id(start_of(0), some_id(2)).has_value()); };
  EXPECT_EQ(peer::read_id(start_of(1), fake_peers::calls())->bytes[0], 2);
}

TEST_F(group_id_file, a_file_of_something_else_is_waited_over) {
  for (const char* const text : {"", "tmap peer id 01",
                                 "a text that is quite long, longer than an id with its mark and "
                                 "its number, so that a whole record can be read from this file, "
                                 "which is none"}) {
    std::ofstream{folder / "id"} << text;
    EXPECT_EQ(peer::read_id(start_of(1, 0), fake_peers::calls()).error().code, status::peer_timeout) << text;
  }
}

TEST_F(group_id_file, a_path_that_cannot_be_written_is_named) {
  peer_start start = start_of(0);
  start.id_file = folder / "no folder" / "id";
  expect_refused(peer::create_group(start, fake_peers::calls()), "start.id_file");
  std::filesystem::create_directory(folder / "id");
  std::filesystem::create_directory(folder / "id" / "in the way");
  expect_refused(peer::create_group(start_of(0), fake_peers::calls()), "start.id_file");
}

TEST_F(group_id_file, rank_0_removes_the_file_when_the_group_is_made_or_cannot_be) {
  std::size_t during = 0;
  machine.polls_in_progress = 1;
  machine.on_nap = [&] { during = files(); };
  EXPECT_TRUE(peer::create_group(start_of(0), fake_peers::calls()).has_value());
  EXPECT_EQ(during, 1u);
  EXPECT_EQ(files(), 0u);
  machine.state = peer::nccl_result::in_progress;
  machine.polls_in_progress = 1;
  EXPECT_FALSE(peer::create_group(start_of(0), fake_peers::calls()).has_value());
  EXPECT_EQ(files(), 0u);
}

TEST_F(group_id_file, other_ranks_leave_the_file) {
  ASSERT_TRUE(peer::write_id(start_of(0), some_id(3)).has_value());
  EXPECT_TRUE(peer::create_group(start_of(1), fake_peers::calls()).has_value());
  EXPECT_EQ(machine.done.front(), "init with id 99, not blocking");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace tmap::testing
