// SPDX-License-Identifier: Apache-2.0
// Tests maps of tensors on other ranks. The ranks are virtual: three windows on one GPU.
#include <tmap/encode_batch.hpp>
#include <tmap/map_service.hpp>
#include <tmap/peer_group.hpp>

#include <cstring>
#include <memory>

#include "device/gpu_fixture.hpp"
#include "device/safe_map.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint32_t virtual_ranks = 3;
constexpr std::uint32_t own_rank = 1;
constexpr std::uint64_t user_bytes = 1 << 20;
constexpr std::uint64_t row_bytes = 256;
constexpr std::uint64_t tensor_count = 200;

/// Holds tensors of rows in a window, each on a rank of its own, as arrays for every source.
struct tensors_of_peers {
  std::vector<std::uint32_t> ranks;
  std::vector<std::uint64_t> own_address, rows;

  explicit tensors_of_peers(const peer_memory_ref& memory) {
    random_source random(19);
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
      ranks.push_back(static_cast<std::uint32_t>(random.below(virtual_ranks)));
      rows.push_back(1 + random.below(20));
      const std::uint64_t first = random.below(user_bytes / row_bytes - rows.back());
      own_address.push_back(memory.address(own_rank, first * row_bytes));
    }
  }
  template <class T>
  std::vector<T> first_rows(const peer_memory_ref& memory) const {
    std::vector<T> first;
    for (const std::uint64_t each : own_address) {
      first.push_back(static_cast<T>((each - memory.address(own_rank)) / row_bytes));
    }
    return first;
  }
};

tensor_spec rows_of_peers(std::uint64_t address) {
  const std::uint64_t dims[] = {64, 32};
  const std::uint32_t box[] = {64, 8};
  return packed_spec(element_type::f32, address, {dims, 2}, {box, 2});
}

class peer_patches : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    std::vector<device_address> at;
    for (std::uint32_t i = 0; i < virtual_ranks; ++i) {
      buffers.push_back(std::make_unique<device_array<unsigned char>>(peer_header_bytes + user_bytes));
      at.emplace_back(buffers.back()->address());
    }
    result<peer_group> group = peer_group::from_addresses(own_rank, at, peer_header_bytes + user_bytes);
    TMAP_ASSERT_OK(group);
    result<peer_memory> opened = group->allocate(user_bytes);
    TMAP_ASSERT_OK(opened);
    window = std::move(*opened);
  }

  const peer_memory_ref& memory() const { return window.ref(); }

  map_template template_of(patch_fields fields) const {
    const result<map_template> base = make_template(rows_of_peers(memory().address(own_rank)), fields);
    EXPECT_TRUE(base.has_value());
    return base.value_or(map_template{});
  }

  /// Returns the maps that the driver makes of the tensors at their owners.
  std::vector<tensor_map> expected(const tensors_of_peers& tensors) const {
    std::vector<tensor_map> maps;
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
      tensor_spec spec = rows_of_peers(memory().at_owner(tensors.ranks[i], tensors.own_address[i]));
      spec.global_dim[1] = tensors.rows[i];
      maps.push_back(encode(spec).value_or(tensor_map{}));
    }
    return maps;
  }

  void check(const tensor_source& source, const tensors_of_peers& tensors) const {
    const device_array<std::uint32_t> ranks(tensors.ranks);
    const device_array<tensor_map> slots(tensor_count);
    const device_array<batch_header> header(1);
    encode_run run{cuda::stream_ref{cudaStream_t{}}};
    run.header = header.data();
    run.choices.owners = {ranks.data(), memory()};
    TMAP_ASSERT_OK(encode_batch(template_of(patch_address | patch_dim(1)), source, slots.data(), tensor_count, run));
    EXPECT_EQ(header.download()[0].bad_count, 0u);
    const std::vector<tensor_map> maps = slots.download();
    const std::vector<tensor_map> wanted = expected(tensors);
    for (std::uint64_t i = 0; i < tensor_count; ++i) ASSERT_EQ(maps[i], wanted[i]) << i;
  }

  std::vector<std::unique_ptr<device_array<unsigned char>>> buffers;
  peer_memory window;
};

TEST_F(peer_patches, every_source_is_moved_to_the_owners) {
  const tensors_of_peers tensors(memory());
  std::vector<map_patch> structs(tensor_count);
  std::vector<std::uint32_t> units, rows_32;
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    structs[i].global_address = tensors.own_address[i];
    structs[i].global_dim[1] = tensors.rows[i];
    units.push_back(static_cast<std::uint32_t>((tensors.own_address[i] - memory().address(own_rank)) / 16));
    rows_32.push_back(static_cast<std::uint32_t>(tensors.rows[i]));
  }
  const device_array<map_patch> patches(structs);
  const device_array<std::uint64_t> addresses(tensors.own_address), rows(tensors.rows);
  const device_array<std::uint32_t> address_units(units), short_rows(rows_32);
  check(patch_array{patches.data()}, tensors);
  check(patch_columns{addresses.data(), {nullptr, rows.data()}, {}}, tensors);
  check(compact_columns{memory().address(own_rank), address_units.data(), {nullptr, short_rows.data()}, {}}, tensors);
}

TEST_F(peer_patches, an_update_moves_a_map_to_another_owner) {
  tensors_of_peers tensors(memory());
  const device_array<std::uint32_t> ranks(tensors.ranks);
  const device_array<std::uint64_t> addresses(tensors.own_address), rows(tensors.rows);
  const patch_columns source{addresses.data(), {nullptr, rows.data()}, {}};
  const map_template base = template_of(patch_address | patch_dim(1));
  encode_run run{cuda::stream_ref{cudaStream_t{}}};
  run.choices.owners = {ranks.data(), memory()};
  result<map_service> service = map_service::create();
  TMAP_ASSERT_OK(service);
  const result<map_batch> batch = service->encode(base, source, tensor_count, run);
  TMAP_ASSERT_OK(batch);
  const std::vector<std::uint32_t> changed{0, 7, tensor_count - 1};
  const std::vector<tensor_map> before = expected(tensors);
  for (const std::uint32_t i : changed) tensors.ranks[i] = (tensors.ranks[i] + 1) % virtual_ranks;
  ranks.upload(tensors.ranks);
  const device_array<std::uint32_t> changes(changed);
  const result<map_batch> updated = service->update(*batch, {changes.data(), changed.size()}, base, source, run);
  TMAP_ASSERT_OK(updated);
  const auto expect_maps = [](const map_batch& of, const std::vector<tensor_map>& wanted) {
    const map_batch_ref& ref = of.ref();
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    std::vector<std::uint32_t> table(tensor_count);
    for (std::uint32_t i = 0; i < tensor_count; ++i) table[i] = i;
    if (ref.indices != nullptr) {
      TMAP_ASSERT_CUDA(cudaMemcpy(table.data(), ref.indices, sizeof(table[0]) * table.size(), cudaMemcpyDeviceToHost));
    }
    for (std::uint32_t i = 0; i < tensor_count; ++i) {
      tensor_map map;
      TMAP_ASSERT_CUDA(cudaMemcpy(&map, ref.slots + table[i], sizeof(map), cudaMemcpyDeviceToHost));
      ASSERT_EQ(map, wanted[i]) << i;
    }
  };
  expect_maps(*batch, before);
  expect_maps(*updated, expected(tensors));
}

template <class Offset>
ragged_rows rows_at(std::uint64_t base, const device_array<Offset>& begins, const device_array<Offset>& counts) {
  return {base, row_bytes, {begins.data(), offset_format::begins_and_counts, sizeof(Offset), counts.data()}};
}

TEST_F(peer_patches, ragged_rows_are_moved_to_the_owners) {
  const tensors_of_peers tensors(memory());
  const device_array<std::int32_t> begins_32(tensors.first_rows<std::int32_t>(memory()));
  const device_array<std::int64_t> begins_64(tensors.first_rows<std::int64_t>(memory()));
  const device_array<std::int32_t> counts_32(std::vector<std::int32_t>(tensors.rows.begin(), tensors.rows.end()));
  const device_array<std::int64_t> counts_64(std::vector<std::int64_t>(tensors.rows.begin(), tensors.rows.end()));
  check(rows_at(memory().address(own_rank), begins_32, counts_32), tensors);
  check(rows_at(memory().address(own_rank), begins_64, counts_64), tensors);
}

// Each patch but the first is wrong in one way. A refused one names the rule.
TEST_F(peer_patches, what_leaves_the_owners_window_is_refused) {
  const std::uint64_t own = memory().address(own_rank);
  const std::vector<std::uint32_t> owners{0, virtual_ranks, ~0u, 2, 2, 0, 2};
  const std::vector<std::uint64_t> at{
      own, own, own, own - row_bytes, memory().address(2), own + user_bytes - row_bytes, std::uint64_t{0}};
  const std::vector<std::uint64_t> rows{1, 1, 1, 1, 1, 2, 1};
  const device_array<std::uint32_t> ranks(owners);
  const device_array<std::uint64_t> addresses(at), dims(rows);
  const device_array<tensor_map> slots(at.size());
  const device_array<map_status> statuses(at.size());
  encode_run run{cuda::stream_ref{cudaStream_t{}}};
  run.statuses = statuses.data();
  run.choices.owners = {ranks.data(), memory()};
  const map_template base = template_of(patch_address | patch_dim(1));
  TMAP_ASSERT_OK(
      encode_batch(base, patch_columns{addresses.data(), {nullptr, dims.data()}, {}}, slots.data(), at.size(), run));
  const std::vector<tensor_map> maps = slots.download();
  const std::vector<map_status> found = statuses.download();
  EXPECT_TRUE(found[0].is_good());
  for (std::size_t i = 1; i < at.size(); ++i) {
    EXPECT_EQ(maps[i], safe_map(base)) << i;
    EXPECT_TRUE(rules_of(found[i]).contains(i == 5 ? rule::t38_address_window : rule::t05_address_null)) << i;
  }
}

}  // namespace
}  // namespace tmap::testing
