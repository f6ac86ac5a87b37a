// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/copy_tiles.hpp>
#include <tmap/encode_batch.hpp>

#include <vector>

#include "device/gpu_fixture.hpp"
#include "support/random_spec.hpp"

// Random ragged batches of source and destination tensors in two buffers, and what a tile copy makes of them, by a
// plain loop.

namespace tmap::testing {

inline const cuda::stream_ref default_stream{cudaStream_t{}};

/// One tensor inside its side's buffer. `spec.global_address` is an offset until the buffer's address is added.
struct ragged_side {
  std::vector<tensor_spec> tensors;
  std::vector<unsigned char> bytes;

  std::vector<map_patch> patches(std::uint64_t base_address) const {
    std::vector<map_patch> made(tensors.size());
    for (std::uint64_t i = 0; i < tensors.size(); ++i) {
      made[i].global_address = base_address + tensors[i].global_address;
      for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
        made[i].global_dim[axis] = tensors[i].global_dim[axis];
        if (axis + 1 < max_rank) made[i].global_stride_bytes[axis] = tensors[i].global_stride_bytes[axis];
      }
    }
    return made;
  }
};

struct ragged_batch {
  tensor_spec tile;
  ragged_side source;
  ragged_side destination;
  std::vector<map_patch> extents;
};

/// Types whose bytes a copy leaves as they are (TF32 rounds, FTZ flushes).
inline constexpr element_type plain_types[] = {element_type::u8,  element_type::u16, element_type::bf16,
                                               element_type::f16, element_type::f32, element_type::i32,
                                               element_type::u64, element_type::f64};

inline tensor_spec random_tile(random_source& random, std::uint32_t rank) {
  tensor_spec tile;
  tile.global_address = 1 << 20;
  tile.rank = rank;
  tile.type = plain_types[random.below(std::size(plain_types))];
  tile.swizzle = static_cast<swizzle>(random.below(4));
  const auto bytes = static_cast<std::uint32_t>(element_bytes(tile.type));
  const std::uint32_t span = tile.swizzle == swizzle::none ? 256 : swizzle_span_bytes(tile.swizzle);
  tile.box_dim[0] = (1 + random.below32(span / 16)) * 16 / bytes;
  if (tile.box_dim[0] > 256) tile.box_dim[0] = 256;
  for (std::uint32_t axis = 1; axis < rank; ++axis) tile.box_dim[axis] = 1 + random.below32(rank < 4 ? 20 : 4);
  for (std::uint32_t axis = 0; axis < rank; ++axis) tile.global_dim[axis] = 1;
  for (std::uint32_t axis = 0; axis + 1 < rank; ++axis) tile.global_stride_bytes[axis] = 16;
  return tile;
}

/// Appends a tensor of these dims with gaps between its rows and before the next tensor.
inline void append_tensor(ragged_side& side, tensor_spec spec, random_source& random) {
  std::uint64_t stride = element_bytes(spec.type);
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    stride = (stride * spec.global_dim[axis] + 15) / 16 * 16 + 16 * random.below(3);
    if (axis + 1 < spec.rank) spec.global_stride_bytes[axis] = stride;
  }
  spec.global_address = side.bytes.size();
  side.tensors.push_back(spec);
  side.bytes.resize(side.bytes.size() + stride + 16 * random.below(4));
}

/// Destinations larger than their sources are padded, smaller ones cropped; some tensors have nothing to walk.
inline ragged_batch random_batch(random_source& random, const tensor_spec& tile, std::uint64_t count) {
  ragged_batch batch;
  batch.tile = tile;
  for (std::uint64_t i = 0; i < count; ++i) {
    tensor_spec source = batch.tile;
    tensor_spec destination = batch.tile;
    map_patch extents{};
    for (std::uint32_t axis = 0; axis < tile.rank; ++axis) {
      const std::uint32_t most = axis < 2 ? 2 * batch.tile.box_dim[axis] + 3 : batch.tile.box_dim[axis] + 2;
      source.global_dim[axis] = 1 + random.below(most);
      destination.global_dim[axis] = random.one_in(2) ? source.global_dim[axis] : 1 + random.below(most);
      extents.global_dim[axis] = destination.global_dim[axis];
    }
    if (random.one_in(6)) extents.global_dim[random.below(tile.rank)] = 0;
    append_tensor(batch.source, source, random);
    append_tensor(batch.destination, destination, random);
    batch.extents.push_back(extents);
  }
  for (unsigned char& byte : batch.source.bytes) byte = static_cast<unsigned char>(random.bits());
  std::fill(batch.destination.bytes.begin(), batch.destination.bytes.end(), device_array<int>::poison);
  return batch;
}

/// How far along `axis` a copy reaches: whole boxes over the extents, up to the end of the destination. A store ends
/// dimension 0 at the next multiple of 16 bytes (docs/measurements/copy_engine_semantics.md, section 1).
inline std::uint64_t copied_dim(const ragged_batch& batch, std::uint64_t i, std::uint32_t axis) {
  const std::uint64_t box = batch.tile.box_dim[axis];
  const std::uint64_t walked = (batch.extents[i].global_dim[axis] + box - 1) / box * box;
  const std::uint64_t unit = axis == 0 ? 16 / element_bytes(batch.tile.type) : 1;
  const std::uint64_t end = (batch.destination.tensors[i].global_dim[axis] + unit - 1) / unit * unit;
  return std::min(walked, end);
}

inline std::uint64_t offset_of(const tensor_spec& spec, const std::uint64_t* at) {
  std::uint64_t offset = spec.global_address + at[0] * element_bytes(spec.type);
  for (std::uint32_t axis = 1; axis < spec.rank; ++axis) offset += at[axis] * spec.global_stride_bytes[axis - 1];
  return offset;
}

/// Copies tensor i element by element into `out`, which holds the destination's buffer.
inline void copy_plainly(const ragged_batch& batch, std::uint64_t i, std::vector<unsigned char>& out) {
  const tensor_spec& from = batch.source.tensors[i];
  const tensor_spec& to = batch.destination.tensors[i];
  const std::uint64_t bytes = element_bytes(from.type);
  std::uint64_t dims[max_rank] = {1, 1, 1, 1, 1};
  std::uint64_t elements = 1;
  for (std::uint32_t axis = 0; axis < from.rank; ++axis) elements *= dims[axis] = copied_dim(batch, i, axis);
  for (std::uint64_t e = 0; e < elements; ++e) {
    std::uint64_t at[max_rank] = {};
    std::uint64_t rest = e;
    bool inside = true;
    for (std::uint32_t axis = 0; axis < from.rank; ++axis) {
      at[axis] = rest % dims[axis];
      rest /= dims[axis];
      inside = inside && at[axis] < from.global_dim[axis];
    }
    unsigned char* const target = out.data() + offset_of(to, at);
    if (inside) {
      std::memcpy(target, batch.source.bytes.data() + offset_of(from, at), bytes);
    } else {
      std::memset(target, 0, bytes);
    }
  }
}

inline std::vector<unsigned char> expected_destination(const ragged_batch& batch) {
  std::vector<unsigned char> out = batch.destination.bytes;
  for (std::uint64_t i = 0; i < batch.extents.size(); ++i) copy_plainly(batch, i, out);
  return out;
}

/// A batch on the device, with its patches, slots and workspace.
struct device_batch {
  explicit device_batch(const ragged_batch& batch)
      : source(batch.source.bytes),
        destination(batch.destination.bytes),
        source_patches(batch.source.patches(source.address())),
        destination_patches(batch.destination.patches(destination.address())),
        extents(batch.extents),
        slots(2 * batch.extents.size()),
        statuses(2 * batch.extents.size()),
        workspace(copy_tiles_workspace_bytes(batch.extents.size()).value_or(0)) {}

  /// Enqueues both encodes and the copy, which may know what became of the maps.
  result<void> run(const ragged_batch& batch, cuda::stream_ref stream, bool knows_statuses = false) const {
    const std::uint64_t count = extents.size();
    map_status* const of_sources = knows_statuses ? statuses.data() : nullptr;
    map_status* const of_destinations = knows_statuses ? statuses.data() + count : nullptr;
    const result<map_template> base = make_template(batch.tile, patch_extents(batch.tile.rank));
    if (!base) return failure(base.error());
    tensor_map* const sources = slots.data();
    tensor_map* const destinations = slots.data() + count;
    result<void> enqueued =
        encode_batch_async(*base, patch_array{source_patches.data()}, sources, count, stream, {.statuses = of_sources});
    if (!enqueued) return enqueued;
    enqueued = encode_batch_async(*base, patch_array{destination_patches.data()}, destinations, count, stream,
                                  {.statuses = of_destinations});
    if (!enqueued) return enqueued;
    const tile_copy_batch copy{batch.tile, sources, destinations, extents.data(), count, of_sources, of_destinations};
    return copy_tiles_async(copy, workspace.data(), workspace.bytes(), stream);
  }

  device_array<unsigned char> source;
  device_array<unsigned char> destination;
  device_array<map_patch> source_patches;
  device_array<map_patch> destination_patches;
  device_array<map_patch> extents;
  device_array<tensor_map> slots;
  device_array<map_status> statuses;
  device_array<unsigned char> workspace;
};

inline void expect_copied(const ragged_batch& batch, const device_batch& on_device) {
  const std::vector<unsigned char> expected = expected_destination(batch);
  const std::vector<unsigned char> found = on_device.destination.download();
  ASSERT_EQ(found.size(), expected.size());
  const auto differ = std::mismatch(found.begin(), found.end(), expected.begin()).first;
  EXPECT_TRUE(differ == found.end()) << "first at byte " << differ - found.begin() << " of " << found.size();
}

}  // namespace tmap::testing
