// SPDX-License-Identifier: Apache-2.0
#include <tmap/copy_tiles.hpp>
#include <tmap/encode_batch.hpp>
#include <tmap/validate.hpp>

#include "kernels/launch.hpp"
#include "lib/encode/device.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

#include <algorithm>

namespace tmap {
namespace {

constexpr std::uint32_t max_blocks_per_multiprocessor = 4;
// What the driver takes of a block's share of shared memory on compute capability 9.
constexpr std::uint32_t reserved_shared_bytes = 1024;

/// Where the parts of a copy's workspace lie: the tile ends, then their sums' scratch.
struct copy_workspace {
  std::uint64_t end_bytes;
  std::size_t scratch_bytes;
  std::uint64_t bytes() const { return end_bytes + scratch_bytes; }
};

copy_workspace lay_out_workspace(std::uint64_t count) {
  return {round_up(count * sizeof(std::uint64_t), workspace_alignment), kernels::inclusive_sum_scratch(count)};
}

/// The fields of a tile that a copy depends on, in a spec whose other fields break no rule.
tensor_spec plain_tile(const tensor_spec& tile) {
  tensor_spec plain;
  plain.global_address = tensor_map_bytes;
  plain.type = tile.type;
  plain.rank = tile.rank;
  plain.swizzle = tile.swizzle;
  std::fill(plain.global_dim, plain.global_dim + max_rank, 1);
  std::fill(plain.global_stride_bytes, plain.global_stride_bytes + max_rank - 1, tensor_map_bytes);
  std::copy(tile.box_dim, tile.box_dim + max_rank, plain.box_dim);
  return plain;
}

result<void> check_tile(const tensor_spec& tile) {
  if (tile.rank < 1 || tile.rank > max_rank) return invalid_argument(tile.rank, max_rank);
  const rule_set broken = broken_rules(tile);
  if (broken.empty()) return {};
  error e{status::rule_broken};
  e.rules = broken;
  for (const violation& v : validate(tile)) {
    if (info(v.id).level != severity::error) continue;
    e.first = v.id;
    e.axis = v.axis;
    e.found = v.found;
    e.allowed = v.allowed;
    break;
  }
  return failure(e);
}

result<void> check_arrays(const tile_copy_batch& batch) {
  if (batch.count > max_batch) return invalid_argument(batch.count, max_batch);
  if (const result<void> checked = check_device_array(batch.sources, alignof(tensor_map)); !checked) return checked;
  if (const result<void> checked = check_device_array(batch.destinations, alignof(tensor_map)); !checked) {
    return checked;
  }
  for (const map_status* const statuses : {batch.source_statuses, batch.destination_statuses}) {
    if (statuses == nullptr) continue;
    if (const result<void> checked = check_device_array(statuses, alignof(map_status)); !checked) return checked;
  }
  return check_device_array(batch.extents, alignof(map_patch));
}

/// As many stages as fit, and as many blocks as their stages leave room for: bytes in flight hide the latency.
result<kernels::tile_copy_plan> plan_copy(const tensor_spec& tile) {
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure(multiprocessors.error());
  const result<shared_memory_limits> shared_memory = query_shared_memory();
  if (!shared_memory) return failure(shared_memory.error());
  const std::uint64_t stage_bytes = round_up(tile_footprint_bytes(tile), shared_alignment(tile.swizzle));
  const std::uint64_t room = shared_memory->per_block - kernels::copy_fixed_shared_bytes;
  if (2 * stage_bytes > room) return invalid_argument(stage_bytes, room / 2);
  const std::uint64_t stages = std::min<std::uint64_t>(room / stage_bytes, kernels::max_copy_stages);
  const std::uint64_t block_bytes = stages * stage_bytes + kernels::copy_fixed_shared_bytes + reserved_shared_bytes;
  const std::uint64_t blocks =
      std::clamp<std::uint64_t>(shared_memory->per_multiprocessor / block_bytes, 1, max_blocks_per_multiprocessor);
  return kernels::tile_copy_plan{static_cast<std::uint32_t>(stages), static_cast<std::uint32_t>(stage_bytes),
                                 static_cast<std::uint32_t>(blocks * *multiprocessors)};
}

result<void> enqueue(const tile_copy_batch& batch, const kernels::tile_copy_plan& plan, const tensor_spec& tile,
                     const copy_workspace& layout, void* workspace, cudaStream_t stream) {
  kernels::tile_shape shape{tile.rank, {}, static_cast<std::uint32_t>(tile_bytes(tile))};
  std::copy(tile.box_dim, tile.box_dim + max_rank, shape.box_dim);
  auto* const tile_ends = static_cast<std::uint64_t*>(workspace);
  void* const scratch = static_cast<unsigned char*>(workspace) + layout.end_bytes;
  const kernels::counted_tensors tensors{batch.extents, batch.source_statuses, batch.destination_statuses, batch.count};
  TMAP_TRY_CUDA(kernels::launch_tile_count(tensors, shape, tile_ends, scratch, layout.scratch_bytes, stream));
  const kernels::tile_copy_arguments arguments{batch.sources, batch.destinations, batch.extents, tile_ends,
                                               batch.count};
  TMAP_TRY_CUDA(kernels::launch_copy_tiles(plan, shape, arguments, stream));
  return {};
}

}  // namespace

result<std::uint64_t> copy_tiles_workspace_bytes(std::uint64_t count) {
  if (count > max_batch) return invalid_argument(count, max_batch);
  if (count == 0) return 0;
  return lay_out_workspace(count).bytes();
}

result<void> copy_tiles_async(const tile_copy_batch& batch, void* workspace, std::uint64_t workspace_bytes,
                              cuda::stream_ref stream) {
  const support::trace_range range{"tmap copy tiles"};
  if (batch.count == 0) return {};
  const tensor_spec tile = plain_tile(batch.tile);
  if (const result<void> checked = check_tile(tile); !checked) return checked;
  if (const result<void> checked = check_arrays(batch); !checked) return checked;
  const result<kernels::tile_copy_plan> plan = plan_copy(tile);
  if (!plan) return failure(plan.error());
  const copy_workspace layout = lay_out_workspace(batch.count);
  if (const result<void> checked = check_workspace(workspace, workspace_bytes, layout.bytes()); !checked) {
    return checked;
  }
  return enqueue(batch, *plan, tile, layout, workspace, stream.get());
}

}  // namespace tmap
