// SPDX-License-Identifier: Apache-2.0
// Tests groups and windows in C without a GPU: groups of given addresses, and of a machine and an
// NCCL made of functions.
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "interop/refuses_bad_structs.hpp"
#include "interop/sized.hpp"
#include "interop/unread.hpp"
#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"
#include "lib/interop/objects.hpp"
#include "lib/peer/make_group.hpp"
#include "peer/fake_peers.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t buffer_bytes = 1 << 20;
constexpr std::uint64_t user_bytes = buffer_bytes - TMAP_PEER_HEADER_BYTES;
constexpr std::array<std::uint64_t, 3> buffers{1 << 20, 1 << 21, 3 << 20};
constexpr std::uint64_t a_day_and_more = 25 * 60 * 60 * 1000;

class c_peers : public ::testing::Test {
 protected:
  c_peers() {
    EXPECT_EQ(tmap_peer_group_from_addresses(1, buffers.data(), 3, buffer_bytes, &group_), TMAP_OK);
    EXPECT_EQ(tmap_peer_group_allocate(group_, user_bytes, &window_), TMAP_OK);
  }
  ~c_peers() override {
    tmap_peer_memory_destroy(window_);
    tmap_peer_group_destroy(group_);
  }

  static std::uint64_t at(std::uint64_t offset) { return buffers[1] + TMAP_PEER_HEADER_BYTES + offset; }

  /// Returns a problem without fault, for a window of these addresses.
  static tmap_exchange_problem problem() {
    tmap_exchange_problem made = sized<tmap_exchange_problem>();
    made.row_bytes = 32;
    made.sent_rows = made.capacity = 100;
    made.splits = unread<std::uint32_t>(at(0));
    made.out_splits = unread<std::uint32_t>(at(256));
    made.rows = unread<void>(at(4096));
    made.out = unread<void>(at(8192));
    made.groups = 2;
    made.placed = TMAP_GROUP_MAJOR;
    made.rows_pitch_bytes = 33;
    made.out_pitch_bytes = 34;
    return made;
  }

  template <class Spoil>
  std::string refused_exchange(const Spoil& spoil) const {
    tmap_exchange_problem bad = problem();
    spoil(bad);
    return refused(tmap_peer_exchange_rows(window_, &bad, nullptr));
  }

  tmap_peer_group group_{};
  tmap_peer_memory window_{};
};

TEST_F(c_peers, a_window_has_the_addresses_of_all_ranks) {
  std::uint32_t rank = 77, ranks = 77;
  EXPECT_EQ(tmap_peer_group_query(group_, &rank, &ranks), TMAP_OK);
  EXPECT_EQ(rank, 1u);
  EXPECT_EQ(ranks, 3u);
  tmap_peer_memory_ref ref{};
  EXPECT_EQ(tmap_peer_memory_query(window_, &ref), TMAP_OK);
  EXPECT_EQ(ref.rank, 1u);
  EXPECT_EQ(ref.ranks, 3u);
  EXPECT_EQ(ref.bytes, user_bytes);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(ref.windows[i], buffers[i]);
}

TEST_F(c_peers, windows_outlive_their_group_and_handles_end_once) {
  EXPECT_EQ(tmap_peer_group_check(group_), TMAP_OK);
  EXPECT_EQ(tmap_peer_group_destroy(group_), TMAP_OK);
  EXPECT_EQ(tmap_peer_group_destroy(group_), TMAP_INVALID_HANDLE);
  EXPECT_EQ(tmap_peer_group_check(group_), TMAP_INVALID_HANDLE);
  tmap_peer_memory_ref ref{};
  EXPECT_EQ(tmap_peer_memory_query(window_, &ref), TMAP_OK);
  EXPECT_EQ(tmap_peer_memory_destroy(window_), TMAP_OK);
  EXPECT_EQ(tmap_peer_memory_destroy(window_), TMAP_INVALID_HANDLE);
  EXPECT_EQ(tmap_peer_memory_query(window_, &ref), TMAP_INVALID_HANDLE);
}

TEST_F(c_peers, wild_handles_name_nothing) {
  const tmap_exchange_problem good = problem();
  const tmap_tensor_spec spec = sized<tmap_tensor_spec>();
  tmap_tensor_spec made{};
  tmap_peer_memory_ref ref{};
  std::uint32_t number = 77;
  for (const std::uint64_t wild : {std::uint64_t{0}, group_.value ^ window_.value, ~std::uint64_t{0}}) {
    EXPECT_EQ(tmap_peer_group_query({wild}, &number, &number), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_group_check({wild}), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_group_allocate({wild}, 1, &window_), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_group_allocate_local({wild}, 1, 1, &window_), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_group_destroy({wild}), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_memory_query({wild}, &ref), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_memory_destroy({wild}), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_exchange_rows({wild}, &good, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_await_pulls({wild}, 0, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_barrier({wild}, 0, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_self_test({wild}, 0, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_abort({wild}), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_last_outcome({wild}, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_all_ranks_spec(&spec, {wild}, &made), TMAP_INVALID_HANDLE);
  }
  // A handle of one kind is none of the other.
  EXPECT_EQ(tmap_peer_memory_query({group_.value}, &ref), TMAP_INVALID_HANDLE);
  EXPECT_EQ(tmap_peer_group_check({window_.value}), TMAP_INVALID_HANDLE);
  EXPECT_EQ(number, 77u);
  EXPECT_EQ(ref.ranks, 0u);
  EXPECT_EQ(made.struct_size, 0u);
}

TEST_F(c_peers, a_group_is_for_one_call_at_a_time) {
  const auto held = interop::peer_groups().find(group_.value);
  const interop::turn<interop::held_group> mine{*held};
  std::uint32_t number = 77;
  tmap_peer_memory second{77};
  EXPECT_EQ(tmap_peer_group_query(group_, &number, &number), TMAP_GROUP_BUSY);
  EXPECT_EQ(tmap_peer_group_check(group_), TMAP_GROUP_BUSY);
  EXPECT_EQ(tmap_peer_group_allocate(group_, 1, &second), TMAP_GROUP_BUSY);
  EXPECT_EQ(tmap_peer_group_allocate_local(group_, 1, 1, &second), TMAP_GROUP_BUSY);
  EXPECT_EQ(number, 77u);
  EXPECT_EQ(second.value, 77u);
}

TEST_F(c_peers, groups_are_refused_by_the_names_of_c) {
  tmap_peer_group made{77};
  const auto from = [&](std::uint32_t rank, const std::uint64_t* windows, std::uint32_t ranks, std::uint64_t bytes) {
    return refused(tmap_peer_group_from_addresses(rank, windows, ranks, bytes, &made));
  };
  EXPECT_EQ(from(0, nullptr, 2, buffer_bytes), "windows");
  EXPECT_EQ(from(0, misaligned(buffers.data()), 2, buffer_bytes), "windows");
  for (const std::uint32_t ranks : {0u, 33u, ~0u}) EXPECT_EQ(from(0, buffers.data(), ranks, buffer_bytes), "ranks");
  EXPECT_EQ(from(3, buffers.data(), 3, buffer_bytes), "rank");
  EXPECT_EQ(from(0, buffers.data(), 3, TMAP_PEER_HEADER_BYTES), "window_bytes");
  EXPECT_EQ(from(0, buffers.data(), 3, buffer_bytes + 1), "windows[1]");
  const std::uint64_t bad[]{1 << 20, (1 << 21) + 8};
  EXPECT_EQ(from(0, bad, 2, buffer_bytes), "windows[1]");
  EXPECT_EQ(refused(tmap_peer_group_from_addresses(0, buffers.data(), 3, buffer_bytes, nullptr)), "group");

  const std::int32_t devices[]{0, 1};
  EXPECT_EQ(refused(tmap_peer_group_of_process(nullptr, 2, &made)), "devices");
  EXPECT_EQ(refused(tmap_peer_group_of_process(devices, 2, nullptr)), "groups");
  for (const std::uint32_t ranks : {0u, 33u, ~0u}) {
    EXPECT_EQ(refused(tmap_peer_group_of_process(devices, ranks, &made)), "ranks");
  }
  EXPECT_EQ(refused(tmap_peer_group_from_nccl(nullptr, 0, &made)), "communicator");
  EXPECT_EQ(refused(tmap_peer_group_from_nccl(unread<ncclComm>(0x10000), a_day_and_more, &made)), "patience_ms");
  EXPECT_EQ(refused(tmap_peer_group_from_nccl(unread<ncclComm>(0x10000), ~std::uint64_t{0}, &made)), "patience_ms");
  EXPECT_EQ(refused(tmap_peer_new_id(nullptr)), "id");
  EXPECT_EQ(made.value, 77u);
}

TEST_F(c_peers, starts_are_checked) {
  tmap_peer_group made{77};
  tmap_peer_start good = sized<tmap_peer_start>();
  good.ranks = 2;
  const auto create = [&](const tmap_peer_start* start) { return tmap_peer_group_create(start, &made); };
  refuses_bad_structs<tmap_peer_start>(good, create);
  const auto refusal = [&](const auto& spoil) {
    tmap_peer_start bad = good;
    spoil(bad);
    return refused(create(&bad));
  };
  EXPECT_EQ(refusal([](auto& s) { s.ranks = 33; }), "start.ranks");
  EXPECT_EQ(refusal([](auto& s) { s.rank = 2; }), "start.rank");
  EXPECT_EQ(refusal([](auto& s) { s.skip_self_test = 2; }), "start.skip_self_test");
  EXPECT_EQ(refusal([](auto& s) { s.patience_ms = a_day_and_more; }), "start.patience_ms");
  EXPECT_EQ(refused(tmap_peer_group_create(&good, nullptr)), "group");
  EXPECT_EQ(made.value, 77u);
}

TEST_F(c_peers, starts_are_converted_whole) {
  tmap_peer_start start = sized<tmap_peer_start>();
  start.rank = 3;
  start.ranks = 5;
  start.id.bytes[127] = 9;
  start.run = 11;
  const peer_start defaults = interop::library_of(start);
  EXPECT_EQ(defaults.rank, 3u);
  EXPECT_EQ(defaults.ranks, 5u);
  EXPECT_EQ(defaults.id.bytes[127], 9);
  EXPECT_EQ(defaults.run, 11u);
  EXPECT_TRUE(defaults.id_file.empty());
  EXPECT_EQ(defaults.patience, peer_start{}.patience);
  EXPECT_TRUE(defaults.self_test);
  start.skip_self_test = 1;
  EXPECT_FALSE(interop::library_of(start).self_test);
  start.id_file = "/a/path";
  start.patience_ms = 1234;
  EXPECT_EQ(interop::library_of(start).id_file, "/a/path");
  EXPECT_EQ(interop::library_of(start).patience, std::chrono::milliseconds{1234});
}

TEST_F(c_peers, problems_are_converted_whole) {
  tmap_exchange_problem from = problem();
  const exchange_problem made = interop::library_of(from);
  EXPECT_EQ(made.rows, from.rows);
  EXPECT_EQ(made.sent_rows, 100u);
  EXPECT_EQ(made.splits, from.splits);
  EXPECT_EQ(made.out, from.out);
  EXPECT_EQ(made.capacity, 100u);
  EXPECT_EQ(made.out_splits, from.out_splits);
  EXPECT_EQ(made.groups, 2u);
  EXPECT_EQ(made.row_bytes, 32u);
  EXPECT_EQ(made.placed, row_placement::group_major);
  EXPECT_EQ(made.rows_pitch_bytes, 33u);
  EXPECT_EQ(made.out_pitch_bytes, 34u);
  from.groups = 0;
  EXPECT_EQ(interop::library_of(from).groups, 1u);
}

TEST_F(c_peers, exchanges_are_refused_by_the_names_of_c) {
  refuses_bad_structs<tmap_exchange_problem>(problem(),
                                             [&](auto* p) { return tmap_peer_exchange_rows(window_, p, nullptr); });
  EXPECT_EQ(refused_exchange([](auto& p) { p.row_bytes = 0; }), "problem.row_bytes");
  EXPECT_EQ(refused_exchange([](auto& p) { p.rows_pitch_bytes = 31; }), "problem.rows_pitch_bytes");
  EXPECT_EQ(refused_exchange([](auto& p) { p.out_pitch_bytes = 31; }), "problem.out_pitch_bytes");
  EXPECT_EQ(refused_exchange([](auto& p) { p.placed = 2; }), "problem.placed");
  EXPECT_EQ(refused_exchange([](auto& p) { p.groups = 1 << 20; }), "problem.groups");
  EXPECT_EQ(refused_exchange([](auto& p) { p.rows = nullptr; }), "problem.rows");
  EXPECT_EQ(refused_exchange([](auto& p) { p.splits = unread<std::uint32_t>(at(2)); }), "problem.splits");
  EXPECT_EQ(refused_exchange([](auto& p) { p.out = unread<void>(at(4096)); }), "problem.out");
  EXPECT_EQ(refused_exchange([](auto& p) { p.out_splits = unread<std::uint32_t>(at(0)); }), "problem.out_splits");
  EXPECT_EQ(refused_exchange([](auto& p) { p.capacity = buffer_bytes; }), "problem.out");
  EXPECT_EQ(refused_exchange([](auto& p) { p.sent_rows = ~std::uint64_t{0}; }), "problem.sent_rows");
  EXPECT_EQ(refused_exchange([](auto& p) { p.blocks = 144; }), "problem.blocks");
  EXPECT_EQ(refused_exchange([](auto& p) { p.patience_ms = a_day_and_more; }), "problem.patience_ms");
}

TEST_F(c_peers, waiting_calls_name_their_patience) {
  EXPECT_EQ(refused(tmap_peer_await_pulls(window_, a_day_and_more, nullptr)), "patience_ms");
  EXPECT_EQ(refused(tmap_peer_barrier(window_, a_day_and_more, nullptr)), "patience_ms");
  EXPECT_EQ(refused(tmap_peer_self_test(window_, ~std::uint64_t{0}, nullptr)), "patience_ms");
}

TEST_F(c_peers, allocations_are_refused_and_named) {
  tmap_peer_memory second{77};
  EXPECT_EQ(refused(tmap_peer_group_allocate(group_, 0, &second)), "bytes");
  EXPECT_EQ(refused(tmap_peer_group_allocate(group_, 1, &second)), "bytes") << "the memory is used up";
  EXPECT_EQ(refused(tmap_peer_group_allocate(group_, 1, nullptr)), "window");
  EXPECT_EQ(refused(tmap_peer_group_allocate_local(group_, 0, 1, &second)), "bytes");
  EXPECT_EQ(refused(tmap_peer_group_allocate_local(group_, 1, 0, &second)), "pair_bytes");
  EXPECT_EQ(refused(tmap_peer_group_allocate_local(group_, 1, 1, nullptr)), "window");
  EXPECT_EQ(refused(tmap_peer_group_allocate_local(group_, 1, 1, &second)), "group") << "it has no communicator";
  EXPECT_EQ(refused(tmap_peer_memory_query(window_, nullptr)), "ref");
  std::uint32_t number = 77;
  EXPECT_EQ(refused(tmap_peer_group_query(group_, nullptr, &number)), "rank");
  EXPECT_EQ(refused(tmap_peer_group_query(group_, &number, nullptr)), "ranks");
  EXPECT_EQ(second.value, 77u);
}

TEST_F(c_peers, one_spec_describes_the_tensors_of_all_ranks) {
  const std::uint64_t dims[] = {64, 100};
  const std::uint32_t box[] = {32, 8};
  tmap_tensor_spec local{}, all{};
  ASSERT_EQ(tmap_packed_spec(TMAP_F32, at(512), 2, dims, box, &local), TMAP_OK);
  ASSERT_EQ(tmap_all_ranks_spec(&local, window_, &all), TMAP_OK);
  EXPECT_EQ(all.struct_size, sizeof all);
  EXPECT_EQ(all.rank, 3u);
  EXPECT_EQ(all.global_dim[2], 3u);
  EXPECT_EQ(all.global_stride_bytes[1], buffers[1] - buffers[0]);
  EXPECT_EQ(all.global_address, buffers[0] + TMAP_PEER_HEADER_BYTES + 512);
  local.rank = 5;
  EXPECT_EQ(refused(tmap_all_ranks_spec(&local, window_, &all)), "local.rank");
  EXPECT_EQ(refused(tmap_all_ranks_spec(nullptr, window_, &all)), "local");
  EXPECT_EQ(refused(tmap_all_ranks_spec(&local, window_, nullptr)), "spec");
}

TEST_F(c_peers, owners_of_maps_need_a_window) {
  const std::uint64_t dims[] = {64, 100};
  const std::uint32_t box[] = {32, 8};
  tmap_tensor_spec spec{};
  ASSERT_EQ(tmap_packed_spec(TMAP_F32, at(512), 2, dims, box, &spec), TMAP_OK);
  tmap_template base{};
  ASSERT_EQ(tmap_template_create_zeroed(&spec, TMAP_PATCH_DIM(1), &base), TMAP_OK);
  const std::uint64_t extent = 0;
  tmap_patch_source source{sizeof source, TMAP_SOURCE_COLUMNS, {}};
  source.of.columns = {nullptr, {nullptr, &extent}, {}};
  alignas(128) tmap_tensor_map slot{};
  const auto encode = [&](const std::uint32_t* owners, tmap_peer_memory window) {
    tmap_call call = sized<tmap_call>();
    call.owners = owners;
    call.owner_window = window;
    return tmap_encode_batch(base, &source, &slot, 1, &call);
  };
  const std::uint32_t owner = 0;
  EXPECT_EQ(encode(&owner, {}), TMAP_INVALID_HANDLE);
  EXPECT_EQ(encode(&owner, {group_.value}), TMAP_INVALID_HANDLE);
  EXPECT_EQ(refused(encode(nullptr, window_)), "call.owner_window");
  EXPECT_EQ(refused(encode(misaligned(&owner), window_)), "call.owners");
  EXPECT_EQ(refused(encode(&owner, window_)), "base.fields") << "maps of peers need the address";
  EXPECT_EQ(tmap_template_destroy(base), TMAP_OK);
}

TEST_F(c_peers, calls_without_maps_take_no_owners) {
  tmap_call call = sized<tmap_call>();
  call.owners = unread<std::uint32_t>(0x10000);
  interop::arguments given;
  interop::check_call(given, call, {});
  EXPECT_EQ(given.complaint().details.argument.view(), "call.owners");
}

TEST_F(c_peers, encodes_of_owners_take_the_window_of_the_handle) {
  tmap_call call = sized<tmap_call>();
  call.owners = unread<std::uint32_t>(0x10000);
  call.owner_window = window_;
  const map_owners owners = interop::run_of<encode_run>(call).choices.owners;
  EXPECT_EQ(owners.ranks, call.owners);
  EXPECT_EQ(owners.memory.ranks, 3u);
  EXPECT_EQ(owners.memory.rank, 1u);
  EXPECT_EQ(owners.memory.windows[2], buffers[2]);
}

/// Hands out a group of the fake machine.
tmap_peer_group handle_of(peer_group&& group) {
  const auto held = std::make_shared<interop::held_group>();
  held->group.emplace(std::move(group));
  tmap_peer_group handle{};
  EXPECT_TRUE(interop::hand_out(interop::peer_groups(), held, &handle).is_ok());
  return handle;
}

tmap_error last_failure() {
  tmap_error last = sized<tmap_error>();
  EXPECT_EQ(tmap_last_error(&last), TMAP_OK);
  return last;
}

TEST(c_peers_of_a_machine, sizes_that_differ_are_reported_and_leave_the_group_whole) {
  fake_peers machine;
  auto groups = peer::group_of_process({0, 1}, fake_peers::calls());
  ASSERT_TRUE(groups.has_value());
  const tmap_peer_group first = handle_of(std::move((*groups)[0])), second = handle_of(std::move((*groups)[1]));
  tmap_peer_memory of_first{}, of_second{};
  EXPECT_EQ(tmap_peer_group_allocate(first, 4096, &of_first), TMAP_OK);
  EXPECT_EQ(tmap_peer_group_allocate(second, 8192, &of_second), TMAP_WINDOWS_DIFFER);
  EXPECT_STREQ(last_failure().argument, "bytes");
  EXPECT_EQ(last_failure().found, 8192u);
  EXPECT_EQ(last_failure().allowed, 4096u);
  EXPECT_EQ(tmap_peer_group_allocate(second, 4096, &of_second), TMAP_OK);
  tmap_peer_memory_ref a{}, b{};
  EXPECT_EQ(tmap_peer_memory_query(of_first, &a), TMAP_OK);
  EXPECT_EQ(tmap_peer_memory_query(of_second, &b), TMAP_OK);
  EXPECT_EQ(std::memcmp(a.windows, b.windows, sizeof a.windows), 0);
  EXPECT_EQ(a.rank, 0u);
  EXPECT_EQ(b.rank, 1u);
  for (const tmap_peer_group each : {first, second}) EXPECT_EQ(tmap_peer_group_destroy(each), TMAP_OK);
  for (const tmap_peer_memory each : {of_first, of_second}) EXPECT_EQ(tmap_peer_memory_destroy(each), TMAP_OK);
  EXPECT_TRUE(machine.is_clean());
}

TEST(c_peers_of_a_machine, a_lost_peer_is_reported) {
  fake_peers machine;
  auto made =
      peer::group_from_nccl(machine.program_communicator(0, 2, 1), std::chrono::seconds{1}, fake_peers::calls());
  ASSERT_TRUE(made.has_value());
  const tmap_peer_group group = handle_of(std::move(*made));
  machine.state = peer::nccl_result::remote_error;
  EXPECT_EQ(tmap_peer_group_check(group), TMAP_PEER_LOST);
  tmap_peer_memory window{77};
  EXPECT_EQ(tmap_peer_group_allocate(group, 4096, &window), TMAP_GROUP_BROKEN);
  EXPECT_EQ(window.value, 77u);
  EXPECT_EQ(tmap_peer_group_destroy(group), TMAP_OK);
}

TEST(c_peers_of_a_machine, a_child_may_call_no_group) {
  fake_peers machine;
  auto groups = peer::group_of_process({0, 1}, fake_peers::calls());
  ASSERT_TRUE(groups.has_value());
  const tmap_peer_group group = handle_of(std::move((*groups)[0]));
  ++machine.process;
  tmap_peer_memory window{77};
  EXPECT_EQ(tmap_peer_group_check(group), TMAP_FORKED);
  EXPECT_EQ(tmap_peer_group_allocate(group, 4096, &window), TMAP_FORKED);
  EXPECT_EQ(window.value, 77u);
  EXPECT_EQ(tmap_peer_group_destroy(group), TMAP_OK);
}

/// Calls on objects that are destroyed meanwhile must work or report that they are gone, or in use.
TEST(c_peers_of_a_machine, a_group_and_a_window_end_under_their_users) {
  fake_peers machine;
  std::atomic<std::uint64_t> wrong{};
  const auto is_expected = [](tmap_status code) {
    return code == TMAP_OK || code == TMAP_GROUP_BUSY || code == TMAP_INVALID_HANDLE;
  };
  for (int round = 0; round < 20; ++round) {
    auto groups = peer::group_of_process({0, 1}, fake_peers::calls());
    ASSERT_TRUE(groups.has_value());
    const tmap_peer_group group = handle_of(std::move((*groups)[0]));
    tmap_peer_memory window{};
    ASSERT_EQ(tmap_peer_group_allocate(group, 64, &window), TMAP_OK);
    std::atomic<std::uint64_t> ends{};
    std::vector<std::thread> threads;
    for (int n = 0; n < 8; ++n) {
      threads.emplace_back([&, n] {
        for (int turn = 0; turn < 20; ++turn) {
          tmap_peer_memory own{};
          tmap_peer_memory_ref ref{};
          const tmap_status made = tmap_peer_group_allocate(group, 64, &own);
          if (made == TMAP_OK) wrong += tmap_peer_memory_destroy(own) == TMAP_OK ? 0 : 1;
          wrong += is_expected(made) && is_expected(tmap_peer_memory_query(window, &ref)) ? 0 : 1;
          if (turn == 10 + n) ends += tmap_peer_group_destroy(group) == TMAP_OK ? 1 : 0;
          if (turn == 10 + n) ends += tmap_peer_memory_destroy(window) == TMAP_OK ? 1 : 0;
        }
      });
    }
    for (std::thread& each : threads) each.join();
    ASSERT_EQ(ends, 2u);
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(machine.is_clean());
}

}  // namespace
}  // namespace tmap::testing
