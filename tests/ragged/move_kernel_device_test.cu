// SPDX-License-Identifier: Apache-2.0

#include <tmap/encode.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "ragged/move_kernel.hpp"

// Tests the moving kernels alone with work that is planned here: every route, element size, rank
// and alignment, and fills. The bytes around each destination must not change.

namespace tmap::kernels {
namespace {

/// States how the tensors of one batch are drawn.
struct draw {
  route way;
  std::uint32_t element_bytes;
  std::uint32_t rank;
  std::uint64_t max_row_bytes;
  bool fills;
};

/// Holds planned work. Addresses are offsets into two memories until `upload`.
struct hand_plan {
  draw from;
  piece_rule rule;
  std::vector<planned_tensor> tensors;
  std::vector<std::uint64_t> ends;
  std::uint64_t source_end{guard_bytes};
  std::uint64_t destination_end{guard_bytes};
};

std::uint32_t alignment_of(const draw& from) {
  switch (from.way) {
    case route::tensor_map:
    case route::bulk: return 16;
    case route::ldgsts: return 4;
    case route::plain: return 1;
  }
  return 1;
}

/// Draws the strides of one side, each at least the extent inside it. Returns the extent of the
/// whole tensor.
std::uint64_t draw_strides(random_source& random, const planned_tensor& tensor, const draw& from,
                           std::uint64_t (&stride)[max_rank - 1]) {
  std::uint64_t extent = tensor.dim[0] * from.element_bytes;
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
    stride[axis - 1] = rounded_up(extent + (random.one_in(2) ? 0 : random.below(40)), alignment_of(from));
    extent += (tensor.dim[axis] - 1) * stride[axis - 1];
  }
  return extent;
}

std::uint64_t pieces_of(const planned_tensor& tensor, const piece_rule& rule) {
  std::uint64_t pieces = 1;
  if (tensor.way == route::tensor_map) {
    for (std::uint32_t axis = 0; axis < rule.map_rank; ++axis) {
      pieces *= (tensor.dim[axis] + rule.box_dim[axis] - 1) / rule.box_dim[axis];
    }
    return pieces;
  }
  const std::uint64_t rows = tensor.dim[1] * tensor.dim[2] * tensor.dim[3] * tensor.dim[4];
  if (tensor.dim[0] > rule.piece_elements) {
    return rows * ((tensor.dim[0] + rule.piece_elements - 1) / rule.piece_elements);
  }
  const std::uint64_t each = rule.piece_elements / tensor.dim[0];
  return (rows + each - 1) / each;
}

planned_tensor draw_tensor(random_source& random, const draw& from) {
  planned_tensor tensor{};
  std::uint64_t row = 1 + random.below(from.max_row_bytes / from.element_bytes);
  if (from.way == route::ldgsts || from.way == route::tensor_map) {
    // LDGSTS moves rows of whole words. Maps move rows of whole 16 bytes, because a store through
    // one may write that much.
    const std::uint32_t multiple = from.way == route::ldgsts ? 4 : 16;
    const std::uint32_t step = multiple / std::gcd(multiple, from.element_bytes);
    row = rounded_up(row, step);
  }
  tensor.dim[0] = row;
  std::uint64_t room = std::max<std::uint64_t>(1, 40000 / (row * from.element_bytes));
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
    tensor.dim[axis] =
        axis < from.rank ? 1 + random.below(std::min<std::uint64_t>(room, random.one_in(2) ? 5 : 70)) : 1;
    room = std::max<std::uint64_t>(1, room / tensor.dim[axis]);
  }
  tensor.way = from.way;
  return tensor;
}

void add_tensor(hand_plan& plan, random_source& random) {
  const std::uint64_t before = plan.ends.empty() ? 0 : plan.ends.back();
  planned_tensor tensor = draw_tensor(random, plan.from);
  tensor.tensor = static_cast<std::uint32_t>(plan.tensors.size());
  const std::uint32_t step = alignment_of(plan.from);
  const auto start = [&](std::uint64_t end) { return rounded_up(end + guard_bytes + random.below(32), step); };
  tensor.source = start(plan.source_end);
  tensor.destination = start(plan.destination_end);
  const std::uint64_t source_bytes = draw_strides(random, tensor, plan.from, tensor.source_stride);
  const std::uint64_t destination_bytes = draw_strides(random, tensor, plan.from, tensor.destination_stride);
  const bool fits = tensor.source + source_bytes + guard_bytes < side_bytes &&
                    tensor.destination + destination_bytes + guard_bytes < side_bytes;
  const bool is_empty = !fits || random.one_in(6);
  if (!is_empty) {
    plan.source_end = tensor.source + source_bytes;
    plan.destination_end = tensor.destination + destination_bytes;
  }
  plan.ends.push_back(before + (is_empty ? 0 : pieces_of(tensor, plan.rule)));
  plan.tensors.push_back(tensor);
}

hand_plan draw_plan(const draw& from, std::uint32_t count, std::uint64_t seed) {
  hand_plan plan{from, move_pieces(from.element_bytes, from.rank), {}, {}};
  random_source random(seed);
  for (std::uint32_t i = 0; i < count; ++i) add_tensor(plan, random);
  return plan;
}

bool has_pieces(const hand_plan& plan, std::size_t i) {
  return plan.ends[i] != (i == 0 ? 0 : plan.ends[i - 1]);
}

template <class Use>
void for_each_element(const planned_tensor& t, std::uint32_t element_bytes, const Use& use) {
  std::uint64_t at[max_rank]{};
  for (std::uint64_t left = t.dim[0] * t.dim[1] * t.dim[2] * t.dim[3] * t.dim[4]; left > 0; --left) {
    std::uint64_t source = t.source + at[0] * element_bytes;
    std::uint64_t destination = t.destination + at[0] * element_bytes;
    for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
      source += at[axis] * t.source_stride[axis - 1];
      destination += at[axis] * t.destination_stride[axis - 1];
    }
    use(source, destination);
    for (std::uint32_t axis = 0; axis < max_rank && ++at[axis] == t.dim[axis]; ++axis) at[axis] = 0;
  }
}

tensor_map make_map(const planned_tensor& tensor, const hand_plan& plan, std::uint64_t address,
                    const std::uint64_t (&stride)[max_rank - 1]) {
  tensor_spec spec{};
  const std::uint32_t bytes = plan.from.element_bytes;
  spec.type = bytes == 1   ? element_type::u8
              : bytes == 2 ? element_type::u16
              : bytes == 4 ? element_type::u32
                           : element_type::u64;
  spec.rank = plan.from.rank;
  spec.global_address = address;
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    spec.global_dim[axis] = tensor.dim[axis];
    spec.box_dim[axis] = plan.rule.box_dim[axis];
    if (axis > 0) spec.global_stride_bytes[axis - 1] = stride[axis - 1];
  }
  const auto map = encode(spec);
  EXPECT_TRUE(map.has_value()) << to_string(map.error());
  return map.value_or(tensor_map{});
}

constexpr ragged::fill_value filling{{3, 141, 59, 26, 53, 58, 97, 93, 23, 84, 62, 64, 33, 83, 27, 95}};

/// Runs the plan and compares the whole memory of the destination.
void expect_moved(hand_plan plan, const device_shape& shape) {
  static const std::vector<unsigned char> source = random_bytes(side_bytes, 1);
  std::vector<unsigned char> expected(side_bytes, device_array<unsigned char>::poison);
  const device_array<unsigned char> from(source);
  const device_array<unsigned char> to(side_bytes);
  const std::uint32_t element_bytes = plan.from.element_bytes;
  std::vector<tensor_map> maps;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    planned_tensor& tensor = plan.tensors[i];
    if (has_pieces(plan, i)) {
      for_each_element(tensor, element_bytes, [&](std::uint64_t in, std::uint64_t out) {
        std::memcpy(&expected[out], plan.from.fills ? filling.bytes : &source[in], element_bytes);
      });
    }
    tensor.source = plan.from.fills ? 0 : tensor.source + from.address();
    tensor.destination += to.address();
    if (plan.from.way != route::tensor_map) continue;
    const bool is_real = has_pieces(plan, i);
    maps.push_back(is_real ? make_map(tensor, plan, tensor.source, tensor.source_stride) : tensor_map{});
    maps.push_back(is_real ? make_map(tensor, plan, tensor.destination, tensor.destination_stride) : tensor_map{});
  }
  const device_array<planned_tensor> tensors(plan.tensors);
  const device_array<std::uint64_t> ends(plan.ends);
  const device_array<tensor_map> map_memory(maps);
  planned_work work{};
  work.tensors = tensors.data();
  work.ends = ends.data();
  work.count = plan.tensors.size();
  work.rule = plan.rule;
  work.maps = map_memory.data();
  TMAP_ASSERT_CUDA(launch_move(work, element_bytes, filling, shape, nullptr));
  const std::vector<unsigned char> moved = to.download();
  if (moved == expected) return;
  std::uint64_t at = 0;
  while (moved[at] == expected[at]) ++at;
  std::size_t near = 0;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (has_pieces(plan, i) && plan.tensors[i].destination - to.address() <= at) near = i;
  }
  const planned_tensor& t = plan.tensors[near];
  ADD_FAILURE() << name(plan.from.way) << " x " << element_bytes << " bytes, rank " << plan.from.rank << ": byte " << at
                << " is " << int{moved[at]} << ", not " << int{expected[at]} << "; tensor " << near << ", byte "
                << at - (t.destination - to.address()) << " bytes past its start; dims " << t.dim[0] << " " << t.dim[1]
                << " " << t.dim[2] << " " << t.dim[3] << " " << t.dim[4] << ", strides " << t.source_stride[0] << " "
                << t.destination_stride[0];
}

constexpr std::uint32_t element_sizes[] = {1, 2, 3, 4, 5, 8, 12, 16};
constexpr std::uint64_t row_limits[] = {16, 100, 1500, 30000};

void sweep(route way, bool fills, const device_shape& shape) {
  std::uint64_t seed = 1;
  for (const std::uint32_t element_bytes : element_sizes) {
    const bool has_type = element_bytes <= 8 && (element_bytes & (element_bytes - 1)) == 0;
    if (way == route::tensor_map && !has_type) continue;
    for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
      for (const std::uint64_t limit : row_limits) {
        const draw from{way, element_bytes, rank, limit, fills};
        expect_moved(draw_plan(from, 150, ++seed), shape);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST_F(move_kernel, plain) {
  sweep(route::plain, false, shape());
}
TEST_F(move_kernel, ldgsts) {
  sweep(route::ldgsts, false, shape());
}
TEST_F(move_kernel, bulk) {
  sweep(route::bulk, false, shape());
}
TEST_F(move_kernel, tensor_map) {
  sweep(route::tensor_map, false, shape());
}
TEST_F(move_kernel, fills) {
  sweep(route::plain, true, shape());
}
TEST_F(move_kernel, fills_in_bulk) {
  sweep(route::bulk, true, shape());
}

/// Neighbouring tensors take different routes, and the stages of a warp serve them in turn.
TEST_F(move_kernel, mixed_routes) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    hand_plan plan =
        draw_plan({route::tensor_map, 4, 1 + static_cast<std::uint32_t>(seed % 5), 3000, false}, 150, seed);
    random_source random(seed);
    std::uint64_t end = 0;
    std::vector<bool> keeps;
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) keeps.push_back(has_pieces(plan, i));
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
      plan.tensors[i].way = static_cast<route>(random.below32(route_count));
      if (keeps[i]) end += pieces_of(plan.tensors[i], plan.rule);
      plan.ends[i] = end;
    }
    expect_moved(plan, shape());
  }
}

/// Uses one block, so that each warp has many tensors. A row of at most a box is one piece by every
/// route.
TEST_F(move_kernel, many_small_tensors) {
  device_shape one_block = shape();
  one_block.multiprocessors = 1;
  std::uint64_t seed = 1;
  for (const route way : {route::plain, route::ldgsts, route::tensor_map}) {
    for (const std::uint64_t limit : {16, 100, 256}) {
      hand_plan plan = draw_plan({way, 4, 1, limit, false}, 900, ++seed);
      for (planned_tensor& tensor : plan.tensors) tensor.way = std::max(way, route::ldgsts);
      expect_moved(plan, one_block);
    }
  }
}

/// Uses tensors of so many pieces that warps take turns, with one block and with all, and fills
/// among them.
TEST_F(move_kernel, large_tensors_in_turns) {
  device_shape one_block = shape();
  one_block.multiprocessors = 1;
  std::uint32_t in_turns = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const route way = seed % 3 == 0 ? route::bulk : seed % 3 == 1 ? route::ldgsts : route::plain;
    const std::uint32_t element_bytes = element_sizes[seed % std::size(element_sizes)];
    const hand_plan plan = draw_plan({way, element_bytes, 1 + static_cast<std::uint32_t>(seed % 2), 1'600'000,
                                      way != route::ldgsts && seed % 2 == 0},
                                     6, seed);
    in_turns += plan.ends.back() >= plan.tensors.size() * 64;
    expect_moved(plan, seed % 4 == 0 ? shape() : one_block);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(in_turns, 12u);
}

TEST_F(move_kernel, one_byte_and_nothing) {
  expect_moved(draw_plan({route::plain, 1, 1, 1, false}, 1, 3), shape());
  hand_plan nothing = draw_plan({route::plain, 1, 1, 1, false}, 40, 3);
  for (std::uint64_t& end : nothing.ends) end = 0;
  expect_moved(nothing, shape());
}

}  // namespace
}  // namespace tmap::kernels
