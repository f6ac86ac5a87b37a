// SPDX-License-Identifier: Apache-2.0
// Reads the PTX and machine code of each row of the order table (docs/peers.md). GPUs hide a
// missing fence, so no run shows it. TMAP_CODE_PTX and TMAP_CODE_CUBIN are order_probe.cu,
// compiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/machine_code.hpp"

namespace tmap::testing {
namespace {

using is_instruction = bool (*)(const instruction&);

template <operation code>
bool is(const instruction& each) {
  return each.operation() == code;
}

std::string ptx_of(const std::string& kernel) {
  return testing::ptx_of(read_file(TMAP_CODE_PTX), kernel);
}

/// Returns whether machine code has these instructions in this order.
bool runs_in_order(const std::string& kernel, const std::vector<is_instruction>& wanted) {
  const std::vector<instruction> code = instructions_of(read_file(TMAP_CODE_CUBIN), kernel);
  auto at = code.begin();
  for (const is_instruction each : wanted) {
    at = std::find_if(at, code.end(), each);
    if (at == code.end()) return false;
    ++at;
  }
  return true;
}

bool has(const std::string& kernel, is_instruction wanted) {
  return runs_in_order(kernel, {wanted});
}

const std::vector<std::string> quiet_and_raise{"cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;",
                                               "fence.acq_rel.sys;", "red.release.sys.global.add.u32"};
// The second fence of all GPUs belongs to the raise.
std::vector<is_instruction> announced_after(is_instruction copy) {
  return {copy, is<bulk_flush>, is<wait_scoreboard>, is_fence_of_all_gpus, is_fence_of_all_gpus, is<reduce_global>};
}
const std::vector<std::string> quiet_and_raise_released{"cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;",
                                                        "fence.acq_rel.sys;", "red.relaxed.sys.global.add.u32"};

// The first looks acquire, too. Machine code may have the polling anywhere.
const std::vector<std::string> poll_and_acquire{"ld.acquire.sys.global.u32", "ld.relaxed.sys.global.u32",
                                                "ld.acquire.sys.global.u32"};
const std::vector<is_instruction> acquired{is_load_of_all_gpus, is_l1_invalidate};

template <class Step>
std::vector<Step> joined(std::vector<Step> first, const std::vector<Step>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

TEST(emitted_order, shared_memory_is_fenced_in_each_writer_before_a_put) {
  EXPECT_TRUE(has_in_order(ptx_of("write_then_put"), {"st.shared", "fence.proxy.async.shared::cta;", "bar",
                                                      "cp.async.bulk.global.shared::cta.bulk_group"}));
  EXPECT_TRUE(
      runs_in_order("write_then_put", {is<store_shared>, is_shared_proxy_fence, is<block_barrier>, is<bulk_copy>}));
}

TEST(emitted_order, quiet_waits_and_fences_before_the_raise) {
  EXPECT_TRUE(
      has_in_order(ptx_of("put_then_raise"), joined({"cp.async.bulk.global.shared::cta.bulk_group"}, quiet_and_raise)));
  EXPECT_TRUE(has_in_order(ptx_of("add_then_raise"),
                           joined({"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"}, quiet_and_raise)));
  EXPECT_TRUE(has_in_order(ptx_of("put_tile_then_raise"),
                           joined({"cp.async.bulk.tensor.1d.global.shared::cta"}, quiet_and_raise)));
  EXPECT_TRUE(runs_in_order("put_then_raise", announced_after(is<bulk_copy>)));
  EXPECT_TRUE(runs_in_order("add_then_raise", announced_after(is<bulk_add>)));
  EXPECT_TRUE(runs_in_order("put_tile_then_raise", announced_after(is<tensor_store>)));
}

TEST(emitted_order, one_fence_of_a_quiet_serves_all_raises_after_it) {
  EXPECT_TRUE(has_in_order(ptx_of("put_then_raise_released"),
                           joined(quiet_and_raise_released, {"red.relaxed.sys.global.add.u32"})));
  EXPECT_TRUE(runs_in_order("put_then_raise_released", {is<bulk_copy>, is<bulk_flush>, is<wait_scoreboard>,
                                                        is_fence_of_all_gpus, is<reduce_global>, is<reduce_global>}));
  EXPECT_FALSE(runs_in_order("put_then_raise_released", {is_fence_of_all_gpus, is_fence_of_all_gpus}));
}

TEST(emitted_order, a_quiet_that_lets_the_last_stores_go_on_waits_for_the_first) {
  EXPECT_TRUE(has_in_order(ptx_of("put_then_raise_the_first"),
                           {"cp.async.bulk.wait_group 3;", "fence.acq_rel.sys;", "red.relaxed.sys.global.add.u32"}));
  EXPECT_TRUE(runs_in_order("put_then_raise_the_first", {is<bulk_copy>, is<bulk_flush>, is<wait_scoreboard>,
                                                         is_fence_of_all_gpus, is<reduce_global>}));
}

TEST(emitted_order, a_raise_of_what_was_flushed_waits_for_it_and_lets_the_last_stores_go_on) {
  EXPECT_TRUE(
      has_in_order(ptx_of("flush_then_raise_the_flushed"),
                   {"cp.async.bulk.wait_group.read 0;", "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 1;",
                    "fence.acq_rel.gpu;", "red.relaxed.sys.global.add.u32", "cp.async.bulk.wait_group 0;"}));
}

TEST(emitted_order, packets_are_single_stores_after_the_fence) {
  EXPECT_TRUE(has_in_order(ptx_of("store_then_send"), {"st.global.u32", "fence.acq_rel.sys;",
                                                       "st.relaxed.sys.global.b128", "st.relaxed.sys.global.b128"}));
  EXPECT_TRUE(has("store_then_send", is_fence_of_all_gpus));
}

TEST(emitted_order, packets_of_a_thread_are_single_accesses_without_a_fence) {
  EXPECT_TRUE(has_in_order(ptx_of("await_packets_then_send"),
                           {"ld.relaxed.sys.global.b128", "ld.relaxed.sys.global.b128", "st.relaxed.sys.global.b128"}));
  EXPECT_FALSE(has("await_packets_then_send", is_fence_of_all_gpus));
}

TEST(emitted_order, packets_are_acquired_before_their_words_are_loaded) {
  EXPECT_TRUE(
      has_in_order(ptx_of("take_then_load"), {"ld.relaxed.sys.global.b128", "fence.acquire.sys;", "ld.global.u32"}));
  EXPECT_TRUE(runs_in_order("take_then_load", {is_l1_invalidate, is_weak_load}));
}

TEST(emitted_order, a_raise_for_the_own_gpu_releases_there) {
  EXPECT_TRUE(has_in_order(ptx_of("store_then_raise_here"), {"st.global.u32", "red.release.gpu.global.add.u32"}));
  EXPECT_TRUE(runs_in_order("store_then_raise_here", {is<memory_barrier>, is<reduce_global>}));
  EXPECT_FALSE(has("store_then_raise_here", is_fence_of_all_gpus));
}

TEST(emitted_order, a_count_for_the_own_gpu_releases_and_acquires_there) {
  EXPECT_TRUE(
      has_in_order(ptx_of("store_then_count_here"), {"st.global.u32", "atom.add.acq_rel.gpu.u32", "ld.global.u32"}));
  EXPECT_TRUE(runs_in_order("store_then_count_here", {is<memory_barrier>, is_l1_invalidate, is_weak_load}));
  EXPECT_FALSE(has("store_then_count_here", is_fence_of_all_gpus));
}

TEST(emitted_order, flush_waits_and_has_no_fence) {
  EXPECT_TRUE(has_in_order(ptx_of("put_then_flush"),
                           {"cp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;", "st.shared"}));
  EXPECT_TRUE(runs_in_order("put_then_flush", {is<bulk_copy>, is<bulk_flush>, is<wait_scoreboard>, is<store_shared>}));
  EXPECT_FALSE(has("put_then_flush", is_fence_of_all_gpus));
}

TEST(emitted_order, settle_waits_and_has_no_fence) {
  EXPECT_TRUE(has_in_order(ptx_of("put_then_settle"), {"cp.async.bulk.global.shared::cta.bulk_group",
                                                       "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;"}));
  EXPECT_TRUE(runs_in_order("put_then_settle", {is<bulk_copy>, is<bulk_flush>, is<wait_scoreboard>}));
  EXPECT_FALSE(has("put_then_settle", is_fence_of_all_gpus));
}

TEST(emitted_order, one_fence_stands_before_the_raises_that_it_serves) {
  EXPECT_TRUE(has_in_order(
      ptx_of("store_then_raise_all"),
      {"st.global.u32", "fence.acq_rel.sys;", "red.relaxed.sys.global.add.u32", "red.relaxed.sys.global.add.u32"}));
  EXPECT_TRUE(runs_in_order("store_then_raise_all", {is_fence_of_all_gpus, is<reduce_global>, is<reduce_global>}));
  EXPECT_FALSE(runs_in_order("store_then_raise_all", {is<reduce_global>, is_fence_of_all_gpus}));
}

TEST(emitted_order, a_wait_acquires_once_it_has_seen_the_signal) {
  EXPECT_TRUE(has_in_order(ptx_of("wait_then_load"), poll_and_acquire));
  EXPECT_TRUE(runs_in_order("wait_then_load", joined(acquired, {is_weak_load})));
}

TEST(emitted_order, a_block_barrier_follows_the_acquire_of_one_thread) {
  EXPECT_TRUE(has_in_order(ptx_of("wait_then_sync"), joined(poll_and_acquire, {"bar"})));
  EXPECT_TRUE(runs_in_order("wait_then_sync", joined(acquired, {is<block_barrier>, is_weak_load})));
}

TEST(emitted_order, a_proxy_fence_stands_between_an_acquire_and_a_get) {
  EXPECT_TRUE(has_in_order(ptx_of("wait_then_get"),
                           {"ld.acquire.sys.global.u32", "fence.proxy.async.global;", "cp.async.bulk.shared"}));
  EXPECT_TRUE(runs_in_order("wait_then_get", joined(acquired, {is_global_proxy_fence, is<bulk_copy>})));
}

TEST(emitted_order, a_credit_is_raised_after_the_get_has_ended) {
  EXPECT_TRUE(has_in_order(ptx_of("get_then_credit"),
                           {"cp.async.bulk.shared", "mbarrier.try_wait.parity", "red.release.sys.global.add.u32"}));
  EXPECT_TRUE(
      runs_in_order("get_then_credit", {is<bulk_copy>, is<phase_check>, is_fence_of_all_gpus, is<reduce_global>}));
}

TEST(emitted_order, a_get_of_a_link_is_expected_before_it_starts) {
  EXPECT_TRUE(has_in_order(ptx_of("get_by_link"), {"mbarrier.expect_tx", "cp.async.bulk.shared", "mbarrier.arrive",
                                                   "mbarrier.try_wait.parity"}));
}

TEST(emitted_order, a_barrier_of_the_group_announces_waits_and_fences) {
  const std::string ptx = ptx_of("group_barrier");
  EXPECT_TRUE(
      has_in_order(ptx, joined(joined(quiet_and_raise_released, poll_and_acquire), {"fence.proxy.async.global;"})));
  EXPECT_TRUE(
      runs_in_order("group_barrier", {is<bulk_flush>, is<wait_scoreboard>, is_fence_of_all_gpus, is<reduce_global>,
                                      is_load_of_all_gpus, is_l1_invalidate, is_global_proxy_fence}));
}

TEST(emitted_order, seeded_code_without_fences_is_recognised) {
  for (const char* const kernel : {"no_quiet", "flush_for_quiet", "relaxed_raise"}) {
    EXPECT_FALSE(has_in_order(ptx_of(kernel), quiet_and_raise)) << kernel;
    EXPECT_FALSE(runs_in_order(kernel, announced_after(is<bulk_copy>))) << kernel;
  }
  EXPECT_FALSE(has_in_order(ptx_of("relaxed_wait"), poll_and_acquire));
  EXPECT_FALSE(runs_in_order("relaxed_wait", acquired));
  EXPECT_FALSE(has("no_proxy_fence", is_global_proxy_fence));
}

// No instruction of this library's waits ends a kernel: a late peer is a status, and the context
// lives.
TEST(emitted_order, nothing_traps) {
  for (const char* const kernel : {"put_then_raise", "wait_then_load", "wait_then_get", "group_barrier"}) {
    EXPECT_EQ(ptx_of(kernel).find("trap"), std::string::npos) << kernel;
  }
}

}  // namespace
}  // namespace tmap::testing
