// SPDX-License-Identifier: Apache-2.0
#include "apps/demo/batch.hpp"

#include <tmap/validate.hpp>

#include <algorithm>
#include <array>

namespace tmap::demo {
namespace {

constexpr std::uint64_t alignment = 1024;

/// Builds a spec in the order in which people name its parts.
struct spec_builder {
  tensor_spec spec;

  spec_builder(element_type type, const std::vector<std::uint64_t>& dims, const std::vector<std::uint64_t>& strides,
               const std::vector<std::uint32_t>& box) {
    spec.type = type;
    spec.rank = static_cast<std::uint32_t>(dims.size());
    std::copy(dims.begin(), dims.end(), spec.global_dim);
    std::copy(strides.begin(), strides.end(), spec.global_stride_bytes);
    std::copy(box.begin(), box.end(), spec.box_dim);
  }
  spec_builder& swizzled_by(swizzle mode) {
    spec.swizzle = mode;
    return *this;
  }
  spec_builder& filled_with(oob_fill fill) {
    spec.oob_fill = fill;
    return *this;
  }
  spec_builder& stepping(std::uint32_t axis, std::uint32_t step) {
    spec.element_stride[axis] = step;
    return *this;
  }
};

/// Adds tensors whose rows have gaps: tensor maps were made for them.
void add_mapped(std::vector<demo_tensor>& tensors) {
  using enum element_type;
  const auto add = [&](const char* name, const spec_builder& built) { tensors.push_back({name, built.spec}); };
  add("weights of a small layer", spec_builder{f16, {100, 300}, {256}, {64, 32}}.swizzled_by(swizzle::bytes_128));
  add("activations with padded rows", spec_builder{bf16, {320, 200}, {768}, {64, 64}}.swizzled_by(swizzle::bytes_128));
  add("a long batch of tokens", spec_builder{f16, {480, 4000}, {1024}, {64, 64}}.swizzled_by(swizzle::bytes_128));
  add("narrow rows", spec_builder{f32, {30, 500}, {128}, {32, 16}});
  add("a grey picture", spec_builder{u8, {500, 333}, {512}, {128, 16}});
  add("a stack of slices", spec_builder{f16, {48, 40, 12}, {128, 5632}, {32, 8, 2}}.swizzled_by(swizzle::bytes_64));
  add("pictures of a batch, channels innermost",
      spec_builder{bf16, {64, 14, 14, 8}, {144, 2016, 28224}, {64, 7, 7, 1}}.swizzled_by(swizzle::bytes_128));
  add("five dimensions", spec_builder{u16, {40, 6, 5, 4, 3}, {96, 640, 3328, 13568}, {16, 3, 2, 2, 1}});
  add("a box of one narrow column", spec_builder{i32, {200, 64}, {1024}, {4, 64}}.swizzled_by(swizzle::bytes_32));
  add("NaN outside the tensor",
      spec_builder{f32, {60, 90}, {256}, {32, 32}}.swizzled_by(swizzle::bytes_128).filled_with(oob_fill::nan));
  add("double precision", spec_builder{f64, {100, 50}, {1024}, {16, 16}}.swizzled_by(swizzle::bytes_128));
  add("every second row",
      spec_builder{f16, {120, 120}, {256}, {64, 64}}.swizzled_by(swizzle::bytes_128).stepping(1, 2));
  add("rows of one group", spec_builder{f16, {256, 77}, {528}, {64, 16}}.swizzled_by(swizzle::bytes_128));
  add("counters", spec_builder{i64, {90, 60}, {736}, {16, 8}});
}

/// Adds tensors that a map can describe, though other copies of the whole tensor are faster; and
/// one without elements.
void add_others(std::vector<demo_tensor>& tensors) {
  using enum element_type;
  const auto add = [&](const char* name, const spec_builder& built) { tensors.push_back({name, built.spec}); };
  add("a dense matrix", spec_builder{f16, {512, 256}, {1024}, {64, 64}}.swizzled_by(swizzle::bytes_128));
  add("long rows", spec_builder{f32, {2048, 40}, {8320}, {32, 8}}.swizzled_by(swizzle::bytes_128));
  add("one dimension", spec_builder{f32, {10000}, {}, {256}});
  add("tiny rows", spec_builder{f16, {16, 20}, {48}, {8, 8}});
  add("a group without rows", spec_builder{bf16, {64, 0}, {128}, {64, 16}});
}

/// Adds specs that break a rule on purpose.
void add_broken(std::vector<demo_tensor>& tensors) {
  using enum element_type;
  const auto add = [&](const char* name, const spec_builder& built) -> demo_tensor& {
    tensors.push_back({name, built.spec, true});
    return tensors.back();
  };
  add("a view that begins 4 bytes late", spec_builder{f16, {96, 64}, {256}, {64, 16}}).spec.global_address += 4;
  add("rows of 200 bytes without padding", spec_builder{f16, {100, 120}, {200}, {64, 32}});
  add("a box that is too large", spec_builder{u8, {512, 400}, {512}, {128, 300}});
  add("a pointer nobody set", spec_builder{f32, {64, 64}, {256}, {32, 32}}).is_null = true;
  add("a box wider than its swizzle", spec_builder{f16, {100, 80}, {256}, {64, 16}}.swizzled_by(swizzle::bytes_64));
  add("a box of 5 elements", spec_builder{f16, {100, 80}, {256}, {5, 16}});
  add("NaN fill for bytes", spec_builder{u8, {200, 90}, {256}, {64, 16}}.filled_with(oob_fill::nan));
  add("more rows than the engine counts", spec_builder{u8, {16, 3000000000}, {16}, {16, 64}});
}

/// Returns the bytes from the first element to the last one. A dim that is out of range needs no
/// memory, as nothing is moved.
std::uint64_t extent_of(const tensor_spec& spec) {
  if (is_empty(spec) || !broken_rules(spec).empty()) return alignment;
  std::uint64_t bytes = element_bytes(spec.type, spec.global_dim[0]);
  for (std::uint32_t axis = 1; axis < spec.rank; ++axis) {
    bytes += (spec.global_dim[axis] - 1) * spec.global_stride_bytes[axis - 1];
  }
  return bytes;
}

void place(demo_batch& batch) {
  std::uint64_t end = 0;
  for (demo_tensor& tensor : batch.tensors) {
    tensor.bytes = extent_of(tensor.at(simulated_base));
    tensor.spec.global_address += end;
    end += (tensor.bytes + alignment - 1) / alignment * alignment;
  }
  batch.memory.resize(end);
}

/// Fills memory with the numbers of splitmix64, the same on every machine.
void fill(std::vector<std::byte>& memory) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    memory[i] = static_cast<std::byte>(x >> 33);
  }
}

/// Adds each box of a tensor, innermost axis first.
void add_tiles(demo_batch& batch, std::uint32_t index) {
  const tensor_spec spec = batch.tensors[index].at(simulated_base);
  if (is_empty(spec) || !broken_rules(spec).empty()) return;
  const auto boxes = drawing::box_grid(spec);
  std::uint64_t count = 1;
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) count *= boxes.at(axis);
  for (std::uint64_t i = 0; i < count; ++i) {
    demo_tile tile{.tensor = index, .at = {}, .offset = batch.tile_bytes, .bytes = tile_footprint_bytes(spec)};
    std::uint64_t rest = i;
    for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
      tile.at.at(axis) = static_cast<std::int32_t>(rest % boxes.at(axis) * spec.box_dim[axis]);
      rest /= boxes.at(axis);
    }
    batch.tiles.push_back(tile);
    batch.tile_bytes += tile.bytes;
  }
}

}  // namespace

tensor_spec demo_tensor::at(std::uint64_t base) const {
  tensor_spec placed = spec;
  placed.global_address = is_null ? 0 : base + spec.global_address;
  return placed;
}

bool is_empty(const tensor_spec& spec) {
  return std::find(spec.global_dim, spec.global_dim + spec.rank, 0u) != spec.global_dim + spec.rank;
}

demo_batch make_batch() {
  demo_batch batch;
  add_mapped(batch.tensors);
  add_others(batch.tensors);
  add_broken(batch.tensors);
  place(batch);
  fill(batch.memory);
  for (std::uint32_t i = 0; i < batch.tensors.size(); ++i) add_tiles(batch, i);
  return batch;
}

}  // namespace tmap::demo
