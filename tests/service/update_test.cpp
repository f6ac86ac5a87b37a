// SPDX-License-Identifier: Apache-2.0
// Tests updates: which maps move, which stay, and how many slots a long chain of updates holds.
#include <algorithm>

#include "service/service_fixture.hpp"

namespace tmap::testing {
namespace {

class update_test : public service_fixture {
 protected:
  /// Moves the listed tensors to other addresses.
  static void move(tensor_list& tensors, const std::vector<std::uint32_t>& which) {
    for (const std::uint32_t i : which) {
      if (i < tensors.patches.size()) tensors.patches[i].global_address += std::uint64_t{1} << 32;
    }
  }

  result<map_batch> update(map_service& service, const map_batch& batch, const std::vector<std::uint32_t>& which,
                           const tensor_list& tensors, const encode_run& run) const {
    return service.update(batch, {which.data(), which.size()}, base, tensors.source(), run);
  }
  result<map_batch> update(map_service& service, const map_batch& batch, const std::vector<std::uint32_t>& which,
                           const tensor_list& tensors, cudaStream_t stream = nullptr) const {
    return update(service, batch, which, tensors, encode_run{stream});
  }
};

TEST_F(update_test, shares_what_did_not_change) {
  map_service service = make();
  const tensor_list before{100};
  tensor_list after = before;
  const std::vector<std::uint32_t> which{3, 99, 50};
  move(after, which);
  const map_batch old = encode(service, before, nullptr).value();
  const map_batch updated = update(service, old, which, after).value();
  EXPECT_EQ(wrong_maps(old, before), 0u);
  EXPECT_EQ(wrong_maps(updated, after), 0u);
  EXPECT_EQ(updated.size(), 100u);
  ASSERT_NE(updated.ref().indices, nullptr);
  for (std::uint32_t i = 0; i < 100; ++i) {
    const bool changed = std::ranges::find(which, i) != which.end();
    EXPECT_EQ(updated.ref().slot(i) == old.ref().slot(i), !changed) << i;
  }
  EXPECT_EQ(service.statistics().slots.leased, 100u + 3 + 4);  // 32 indices a slot
  EXPECT_EQ(service.statistics().encoded_maps, 103u);
  EXPECT_EQ(service.statistics().batches, 2u);
}

TEST_F(update_test, the_old_batch_may_go_at_once) {
  map_service service = make(200);
  tensor_list tensors{100};
  map_batch old = encode(service, tensors, nullptr).value();
  move(tensors, {7});
  const map_batch updated = update(service, old, {7}, tensors).value();
  ASSERT_TRUE(old.release().has_value());
  EXPECT_EQ(service.statistics().slots.leased, 105u);
  const map_batch other = encode(service, tensor_list{90, std::uint64_t{1} << 40}, nullptr).value();
  EXPECT_EQ(wrong_maps(updated, tensors), 0u);
}

TEST_F(update_test, a_header_counts_the_changed_maps_only) {
  map_service service = make();
  tensor_list tensors{64};
  tensors.patches[1].global_address = 8;
  const map_batch old = encode(service, tensors, nullptr).value();
  tensors.patches[5].global_address = 24;
  tensors.patches[9].global_dim[1] = 0;
  batch_header header;
  const map_batch updated =
      update(service, old, {9, 5, 6}, tensors, {.where = {cudaStream_t{}}, .header = &header}).value();
  EXPECT_EQ(wrong_maps(updated, tensors), 0u);
  EXPECT_EQ(header.bad_count, 1u);
  EXPECT_EQ(header.first_bad, 5u);
  EXPECT_EQ(header.empty_count, 1u);
  EXPECT_EQ(service.statistics().bad_maps, 2u);
}

TEST_F(update_test, passes_over_indices_beyond_the_batch_and_takes_one_twice) {
  map_service service = make();
  for (const std::uint32_t count : {100u, 2u}) {  // shared, and all moved
    tensor_list tensors{count};
    const map_batch old = encode(service, tensors, nullptr).value();
    const std::vector<std::uint32_t> which{1, count, ~0u, 1, 0};
    move(tensors, {0, 1});
    const map_batch updated = update(service, old, which, tensors).value();
    EXPECT_EQ(wrong_maps(updated, tensors), 0u);
  }
}

TEST_F(update_test, without_changes_everything_is_shared) {
  map_service service = make();
  const tensor_list tensors{100};
  const map_batch old = encode(service, tensors, nullptr).value();
  const map_batch updated = update(service, old, {}, tensors).value();
  EXPECT_EQ(wrong_maps(updated, tensors), 0u);
  EXPECT_EQ(updated.ref().slot(42), old.ref().slot(42));
}

TEST_F(update_test, takes_columns) {
  map_service service = make();
  tensor_list tensors{40};
  const map_batch old = encode(service, tensors, nullptr).value();
  move(tensors, {11});
  std::vector<std::uint64_t> columns[4];
  for (const map_patch& patch : tensors.patches) {
    columns[0].push_back(patch.global_address);
    columns[1].push_back(patch.global_dim[0]);
    columns[2].push_back(patch.global_dim[1]);
    columns[3].push_back(patch.global_stride_bytes[0]);
  }
  const patch_columns source{columns[0].data(), {columns[1].data(), columns[2].data()}, {columns[3].data()}};
  const std::uint32_t which[] = {11};
  const map_batch updated = service.update(old, {which, 1}, base, source, {stream_of(nullptr)}).value();
  EXPECT_EQ(wrong_maps(updated, tensors), 0u);
}

TEST_F(update_test, everything_moves_when_sharing_would_hold_too_much) {
  map_service service = make();
  tensor_list tensors{8};
  const map_batch old = encode(service, tensors, nullptr).value();
  move(tensors, {0, 1, 2, 3, 4, 5, 6, 7});
  const map_batch all = update(service, old, {0, 1, 2, 3, 4, 5, 6, 7}, tensors).value();
  EXPECT_EQ(all.ref().indices, nullptr);
  EXPECT_EQ(wrong_maps(all, tensors), 0u);
  EXPECT_EQ(service.statistics().slots.leased, 16u);
}

TEST_F(update_test, a_header_counts_also_where_everything_moves) {
  map_service service = make();
  tensor_list tensors{8};
  const map_batch old = encode(service, tensors, nullptr).value();
  const std::vector<std::uint32_t> which{0, 1, 2, 3, 4, 5, 6, 7};
  move(tensors, which);
  batch_header header{77, 77, 77, 0};
  const map_batch all = update(service, old, which, tensors, {.where = {cudaStream_t{}}, .header = &header}).value();
  EXPECT_EQ(all.ref().indices, nullptr);
  EXPECT_EQ(wrong_maps(all, tensors), 0u);
  EXPECT_EQ(header.bad_count, 0u);
  EXPECT_EQ(header.first_bad, no_bad_item);
}

TEST_F(update_test, a_long_chain_holds_a_bounded_number_of_slots) {
  constexpr std::uint32_t maps = 1000;
  map_service service = make(4 * maps);
  tensor_list tensors{maps};
  map_batch batch = encode(service, tensors, nullptr).value();
  std::uint32_t compactions = 0;
  for (std::uint32_t round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> which;
    for (std::uint32_t i = 0; i < maps / 10; ++i) which.push_back((round * 37 + i * 11) % maps);
    move(tensors, which);
    batch = update(service, batch, which, tensors).value();
    compactions += batch.ref().indices == nullptr ? 1 : 0;
    ASSERT_EQ(wrong_maps(batch, tensors), 0u) << round;
    ASSERT_LE(service.statistics().slots.leased, 2 * maps);
    machine.streams.run_all();
  }
  EXPECT_GE(compactions, 20u);
  EXPECT_LE(compactions, 40u);
  EXPECT_LE(service.statistics().peak_leased, 3 * maps);
}

TEST_F(update_test, slots_of_another_slab_are_not_shared) {
  map_service service = try_make({.capacity = 100, .max_capacity = 300}).value();
  tensor_list tensors{100};
  const map_batch old = encode(service, tensors, nullptr).value();
  move(tensors, {5});
  const map_batch updated = update(service, old, {5}, tensors).value();
  EXPECT_EQ(updated.ref().indices, nullptr);
  EXPECT_EQ(wrong_maps(updated, tensors), 0u);
}

TEST_F(update_test, in_a_capture_too_slots_of_another_slab_are_not_taken_to_share) {
  map_service service = try_make({.capacity = 100, .max_capacity = 200}).value();
  const cudaStream_t stream = machine.streams.open_stream();
  tensor_list tensors{100};
  const map_batch old = encode(service, tensors, stream).value();
  ASSERT_TRUE(encode(service, tensors, stream).value().release().has_value()) << "grows, and is free again";
  machine.streams.run_all();
  ASSERT_EQ(service.statistics().slots.free, 100u);
  move(tensors, {5});
  machine.streams.begin_capture(stream);
  {
    const map_batch updated = update(service, old, {5}, tensors, stream).value();
    EXPECT_EQ(updated.ref().indices, nullptr);
    EXPECT_EQ(wrong_maps(updated, tensors), 0u);
  }
  const auto refused = update(service, old, {5}, tensors, stream);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::pool_exhausted);
  machine.streams.destroy_graph(machine.streams.end_capture(stream));
  EXPECT_EQ(service.statistics().exhausted_calls, 1u);
  EXPECT_EQ(service.statistics().slots.free, 100u) << "the graph held the slots of its update, and no more";
}

TEST_F(update_test, the_slab_of_the_old_batch_is_preferred) {
  map_service service = try_make({.capacity = 110, .max_capacity = 220}).value();
  tensor_list tensors{100};
  const map_batch old = encode(service, tensors, nullptr).value();
  const map_batch other = encode(service, tensors, nullptr).value();
  const map_batch more = encode(service, tensor_list{5}, nullptr).value();  // the smallest piece is in the other slab
  ASSERT_EQ(service.statistics().slots.capacity, 220u);
  move(tensors, {5});
  const map_batch updated = update(service, other, {5}, tensors).value();
  EXPECT_NE(updated.ref().indices, nullptr);
  EXPECT_EQ(wrong_maps(updated, tensors), 0u);
}

TEST_F(update_test, more_changes_than_a_batch_has_maps_are_refused_before_anything) {
  map_service service = make();
  const tensor_list tensors{40};
  const map_batch old = encode(service, tensors, nullptr).value();
  const std::uint32_t which[] = {1};
  const std::uint64_t calls = machine.streams.calls_made();
  const auto refused = service.update(old, {which, max_batch + 1}, base, tensors.source(), {stream_of(nullptr)});
  expect_refused(refused, "changed.count", max_batch + 1, max_batch, "more changes than maps");
  EXPECT_EQ(machine.streams.calls_made(), calls);
}

TEST_F(update_test, a_pool_that_is_full_changes_nothing) {
  map_service service = make(104);
  const tensor_list tensors{100};
  const map_batch old = encode(service, tensors, nullptr).value();
  const auto refused = update(service, old, {5}, tensors);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::pool_exhausted);
  EXPECT_EQ(service.statistics().slots.leased, 100u);
  EXPECT_EQ(service.statistics().slots.free, 4u);
  EXPECT_EQ(wrong_maps(old, tensors), 0u);
}

TEST_F(update_test, what_does_not_fit_together_is_refused) {
  map_service service = make();
  map_service other = make();
  const tensor_list tensors{40};
  const map_batch judged = encode(service, tensors, nullptr).value();
  const encode_run judging{cudaStream_t{}};
  const encode_run trusting{.where = {cudaStream_t{}}, .choices = {.trusted = true}};
  const map_batch trusted = encode(service, tensors, trusting).value();
  const auto updated_by = [&](map_service& by, const map_batch& batch, const encode_run& run) {
    return update(by, batch, {1}, tensors, run);
  };
  expect_refused(updated_by(service, judged, trusting), "choices.trusted", 1, 0, "of a judged batch");
  expect_refused(updated_by(service, trusted, judging), "choices.trusted", 0, 1, "of a trusted batch");
  expect_refused(updated_by(service, map_batch{}, judging), "batch", "an empty one");
  expect_refused(updated_by(other, judged, judging), "batch", "another service's");
  const map_batch updated = update(service, trusted, {1}, tensors, trusting).value();
  EXPECT_EQ(updated.ref().statuses, nullptr);
}

TEST_F(update_test, another_stream_waits_for_the_batch_and_is_waited_for) {
  map_service service = make(105);
  const cudaStream_t one = machine.streams.open_stream();
  const cudaStream_t two = machine.streams.open_stream();
  tensor_list tensors{100};
  map_batch old = encode(service, tensors, one).value();
  machine.streams.write(one, const_cast<tensor_map*>(old.ref().slot(0)), 1, 1);
  map_batch updated = update(service, old, {5}, tensors, two).value();
  machine.streams.read(two, updated.ref().slot(0), 1, 1);
  ASSERT_TRUE(old.release().has_value());
  ASSERT_TRUE(updated.release().has_value());
  const map_batch next = encode(service, tensor_list{105}, one).value();
  machine.streams.write(one, const_cast<tensor_map*>(next.ref().slot(0)), 1, 2);
  EXPECT_EQ(machine.streams.ready(), std::vector<fake_stream_id>{machine.streams.id_of(one)});
  machine.streams.run_all();
  EXPECT_EQ(machine.streams.foreign_ids(), 0u);
}

TEST_F(update_test, a_stream_that_uses_it_is_waited_for_by_all_of_its_slots) {
  map_service service = make(105);
  const cudaStream_t one = machine.streams.open_stream();
  const cudaStream_t two = machine.streams.open_stream();
  const tensor_list tensors{100};
  map_batch old = encode(service, tensors, one).value();
  machine.streams.write(one, const_cast<tensor_map*>(old.ref().slot(0)), 1, 1);
  map_batch updated = update(service, old, {5}, tensors, one).value();
  ASSERT_TRUE(old.release().has_value());
  ASSERT_TRUE(updated.use_on(stream_of(two)).has_value());
  machine.streams.read(two, updated.ref().slot(0), 1, 1);
  ASSERT_TRUE(updated.release().has_value());
  const map_batch next = encode(service, tensor_list{100}, one).value();
  machine.streams.write(one, const_cast<tensor_map*>(next.ref().slot(0)), 1, 2);
  const fake_stream_id first = machine.streams.id_of(one);
  const auto may_go_on = [&] {
    const std::vector<fake_stream_id> ready = machine.streams.ready();
    return std::ranges::find(ready, first) != ready.end();
  };
  while (may_go_on()) machine.streams.step(first);
  machine.streams.run_all();
  EXPECT_EQ(machine.streams.foreign_ids(), 0u);
}

TEST_F(update_test, a_graph_keeps_what_its_update_shares) {
  map_service service = make();
  const cudaStream_t stream = machine.streams.open_stream();
  tensor_list tensors{100};
  map_batch old = encode(service, tensors, stream).value();
  machine.streams.run_all();
  machine.streams.begin_capture(stream);
  map_batch updated = update(service, old, {5}, tensors, stream).value();
  const cudaGraph_t graph = machine.streams.end_capture(stream);
  ASSERT_TRUE(updated.release().has_value());
  ASSERT_TRUE(old.release().has_value());
  machine.streams.run_all();
  EXPECT_EQ(service.statistics().slots.captured, 105u);
  machine.streams.destroy_graph(graph);
  machine.streams.run_all();
  EXPECT_EQ(service.statistics().slots.free, 256u);
  EXPECT_TRUE(machine.streams.violations().empty());
}

}  // namespace
}  // namespace tmap::testing
