// SPDX-License-Identifier: Apache-2.0
// Tests the verdict that the planning kernel and the host's engine share: each fault alone, faults
// together, and random bits. A slow planner must return the same.
#include <tmap/detail/judge_tensors.hpp>

#include <gtest/gtest.h>

#include "ragged/hostile_sides.hpp"
#include "ragged/large_sides.hpp"
#include "ragged/packed_reference.hpp"
#include "ragged/plan_reference.hpp"

namespace tmap::testing {
namespace {

using detail::pair_terms;
using detail::pair_verdict;
using detail::shape_relation;
using detail::side_extents;
using ragged::fault;

constexpr std::uint32_t empty_bit = ragged::tensor_status::empty_bit;
constexpr address_window windows[] = {{0x10000, 0x10100}, {0x20000, 0x20100}};

constexpr std::uint32_t bits_of(fault f) {
  return static_cast<std::uint32_t>(f);
}
constexpr std::uint32_t operator|(fault a, fault b) {
  return bits_of(a) | bits_of(b);
}
constexpr std::uint32_t operator|(std::uint32_t a, fault b) {
  return a | bits_of(b);
}

/// Holds a valid tensor of 2 x 4 x 8 words, which fills a window on each side.
struct judged_case {
  side_extents source{0x10000, {8, 4, 2, 1, 1}, {32, 128, 0, 0}};
  side_extents destination{0x20000, {8, 4, 2, 1, 1}, {32, 128, 0, 0}};
  pair_terms terms{shape_relation::equal, {4, {}}, {4, {}}, {windows, 2}};

  constexpr pair_verdict judged() const { return detail::judge_pair<3>(source, destination, terms); }
};
static_assert(judged_case{}.judged().bits == 0 && judged_case{}.judged().has_destination);

struct spoilt_case {
  const char* name;
  void (*spoil)(judged_case& c);
  std::uint32_t bits;
  bool has_destination{true};
};

void make_huge(judged_case& c) {
  c.source.dim[0] = c.destination.dim[0] = (std::uint64_t{1} << 40) + 1;
}
void make_room_small(judged_case& c) {
  c.terms.destination.room = {0x20000, 255};
}
void clip(judged_case& c) {
  c.terms.relation = shape_relation::clipped;
}

constexpr std::uint64_t last = detail::address_limit;

const spoilt_case alone[] = {
    {"a dim", make_huge, bits_of(fault::dim), false},
    {"bytes",
     [](judged_case& c) { c.source.dim[0] = c.source.dim[2] = c.destination.dim[0] = c.destination.dim[2] = 1u << 22; },
     bits_of(fault::dim), false},
    {"a wild stride", [](judged_case& c) { c.source.stride[0] = std::uint64_t{1} << 46; }, bits_of(fault::stride)},
    {"a misaligned stride", [](judged_case& c) { c.source.stride[1] = 130; }, bits_of(fault::stride)},
    {"null", [](judged_case& c) { c.source.address = 0; }, bits_of(fault::address)},
    {"a misaligned address", [](judged_case& c) { c.source.address += 2; }, bits_of(fault::address)},
    {"an address beyond all", [](judged_case& c) { c.source.address = last; }, bits_of(fault::address)},
    {"reaching beyond all", [](judged_case& c) { c.source.address = last - 252; }, bits_of(fault::address)},
    {"outside the windows", [](judged_case& c) { c.source.address += 4; }, bits_of(fault::window)},
    {"differing dims", [](judged_case& c) { c.source.dim[2] = 1; }, bits_of(fault::mismatch)},
    {"shared bytes", [](judged_case& c) { c.destination.stride[0] = 28; }, bits_of(fault::overlap), false},
    {"past the buffer", make_room_small, bits_of(fault::truncated)},
    {"cut", [](judged_case& c) { clip(c), c.destination.dim[1] = 3; }, bits_of(fault::truncated)},
};

const spoilt_case together[] = {
    {"window and mismatch", [](judged_case& c) { c.source.address += 4, c.destination.dim[2] = 1; },
     fault::window | fault::mismatch},
    {"window of the destination and mismatch", [](judged_case& c) { c.destination.address += 4, c.source.dim[2] = 1; },
     fault::window | fault::mismatch, false},
    {"window and overlap", [](judged_case& c) { c.destination.address += 0x100, c.destination.stride[0] = 28; },
     fault::window | fault::overlap, false},
    {"address and overlap", [](judged_case& c) { c.destination.address = 0, c.destination.stride[0] = 28; },
     fault::address | fault::overlap, false},
    {"stride and address", [](judged_case& c) { c.source.address = 0, c.source.stride[0] = 33; },
     fault::stride | fault::address},
    {"each side its own",
     [](judged_case& c) { c.source.stride[0] = 33, c.destination.address += 0x1000, c.destination.dim[2] = 1; },
     fault::stride | fault::window | fault::mismatch, false},
    {"dim hides window and overlap",
     [](judged_case& c) { make_huge(c), c.destination.address += 4, c.destination.stride[0] = 28; },
     bits_of(fault::dim), false},
    {"truncated and window", [](judged_case& c) { make_room_small(c), c.source.address += 4; }, bits_of(fault::window)},
    {"truncated and mismatch", [](judged_case& c) { make_room_small(c), c.source.dim[2] = 1; },
     bits_of(fault::mismatch)},
    {"cut and address", [](judged_case& c) { clip(c), c.destination.dim[1] = 3, c.source.address = 0; },
     bits_of(fault::address)},
    {"cut and overlap", [](judged_case& c) { clip(c), c.destination.dim[1] = 3, c.destination.stride[0] = 28; },
     bits_of(fault::overlap), false},
};

/// A side without elements has no memory: the check ignores its address, windows and strides.
const spoilt_case without_elements[] = {
    {"source outside the windows", [](judged_case& c) { c.source.dim[1] = 0, c.source.address += 0x1000; },
     bits_of(fault::mismatch)},
    {"source at null", [](judged_case& c) { c.source.dim[0] = 0, c.source.address = 0; }, bits_of(fault::mismatch)},
    {"source with a huge dim", [](judged_case& c) { c.source.dim[0] = 0, c.source.dim[1] = ~0ull; },
     bits_of(fault::mismatch)},
    {"destination outside the windows", [](judged_case& c) { c.destination.dim[2] = 0, c.destination.address = 4; },
     bits_of(fault::mismatch)},
    {"a bad source still is", [](judged_case& c) { c.destination.dim[2] = 0, c.source.address += 4; },
     fault::window | fault::mismatch},
    {"both", [](judged_case& c) { c.source.dim[0] = c.destination.dim[2] = 0, c.source.address = 0; }, empty_bit},
    {"source of a reduction", [](judged_case& c) { c.terms.relation = shape_relation::reduced, c.source.dim[0] = 0; },
     empty_bit},
    {"padded", [](judged_case& c) { clip(c), c.source.dim[2] = 0, c.source.address = 0; }, empty_bit},
    {"padded into a bad place", [](judged_case& c) { clip(c), c.source.dim[2] = 0, c.destination.address += 4; },
     bits_of(fault::window), false},
    {"padded into nothing", [](judged_case& c) { clip(c), c.destination.dim[2] = 0, c.destination.address = 0; },
     bits_of(fault::truncated)},
    {"unpadded", [](judged_case& c) { c.terms.relation = shape_relation::corner, c.destination.dim[1] = 0; },
     empty_bit},
    {"unpadded from nothing", [](judged_case& c) { c.terms.relation = shape_relation::corner, c.source.dim[1] = 0; },
     bits_of(fault::mismatch)},
};

const spoilt_case relations[] = {
    {"swapped",
     [](judged_case& c) {
       c = {}, c.terms.relation = shape_relation::swapped, c.source.dim[0] = 4, c.source.dim[1] = 8,
       c.source.stride[0] = 16;
     },
     0},
    {"not swapped", [](judged_case& c) { c.terms.relation = shape_relation::swapped; }, bits_of(fault::mismatch)},
    {"reduced", [](judged_case& c) { c.terms.relation = shape_relation::reduced, c.destination.dim[0] = 1; }, 0},
    {"not reduced", [](judged_case& c) { c.terms.relation = shape_relation::reduced; }, bits_of(fault::mismatch)},
    {"padded", [](judged_case& c) { clip(c), c.source.dim[0] = 7; }, 0},
    {"unpadded", [](judged_case& c) { c.terms.relation = shape_relation::corner, c.destination.dim[0] = 7; }, 0},
    {"unpadded from less", [](judged_case& c) { c.terms.relation = shape_relation::corner, c.source.dim[0] = 7; },
     bits_of(fault::mismatch)},
    {"permuted", [](judged_case& c) { c.destination.stride[0] = 64, c.destination.stride[1] = 32; }, 0},
};

const spoilt_case spared[] = {
    {"a full buffer",
     [](judged_case& c) {
       c.terms.destination.room = {0x20000, 256};
     },
     0},
    {"a source that shares bytes", [](judged_case& c) { c.source.stride[0] = 28; }, 0},
    {"any stride of a dim of one",
     [](judged_case& c) { c.source.dim[2] = c.destination.dim[2] = 1, c.source.stride[1] = ~0ull; }, 0},
    {"the largest",
     [](judged_case& c) {
       c.source = c.destination = {0x10000, {1ull << 40, 16, 2, 1, 1}, {1ull << 42, 1ull << 46}}, c.terms.limits = {};
     },
     0},
    {"no windows", [](judged_case& c) { c.terms.limits = {}, c.source.address += 4; }, 0},
    {"ending at the last address", [](judged_case& c) { c.terms.limits = {}, c.source.address = last - 256; }, 0},
};

template <std::size_t N>
void expect_judged(const spoilt_case (&cases)[N]) {
  for (const spoilt_case& each : cases) {
    judged_case c;
    each.spoil(c);
    EXPECT_EQ(c.judged().bits, each.bits) << each.name;
    EXPECT_EQ(c.judged().has_destination, each.has_destination) << each.name;
  }
}

TEST(judge_tensors, no_fault) {
  expect_judged(spared);
}
TEST(judge_tensors, each_fault_alone) {
  expect_judged(alone);
}
TEST(judge_tensors, faults_together) {
  expect_judged(together);
}
TEST(judge_tensors, sides_without_elements_have_no_faults) {
  expect_judged(without_elements);
}
TEST(judge_tensors, dims_by_their_relation) {
  expect_judged(relations);
}

/// Returns a valid tensor with the longest legal stride and without windows.
judged_case with_longest_stride() {
  judged_case c;
  c.terms.limits = {};
  c.source.dim[2] = c.destination.dim[2] = 1;
  c.source.stride[0] = detail::max_stride_reach / c.source.dim[1];
  return c;
}

/// Returns a valid tensor of the most bytes.
judged_case with_most_bytes() {
  judged_case c;
  c.terms.limits = {};
  for (side_extents* const side : {&c.source, &c.destination}) {
    side->dim[0] = side->dim[1] = 1024;
    side->dim[2] = detail::max_tensor_bytes / 4 / (side->dim[0] * side->dim[1]);
    detail::pack_strides<3>(*side, 4);
  }
  return c;
}

TEST(judge_tensors, the_largest_extents) {
  judged_case c = with_longest_stride();
  EXPECT_EQ(c.judged().bits, 0u);
  c.source.stride[0] += 4;
  EXPECT_EQ(c.judged().bits, bits_of(fault::stride));
  c = with_most_bytes();
  EXPECT_EQ(c.judged().bits, 0u);
  ++c.source.dim[2], ++c.destination.dim[2];
  EXPECT_NE(c.judged().bits & bits_of(fault::dim), 0u);
}

TEST(judge_tensors, the_most_bytes_of_each_of_many) {
  for (const std::uint64_t count : {1ull, 2ull, 65535ull, 65536ull, 65537ull, 1000003ull, 1ull << 24}) {
    const auto most = static_cast<std::uint64_t>(slow::most_bytes(count));
    EXPECT_EQ(detail::most_tensor_bytes(count), most) << count;
    judged_case c;
    c.terms.source.element_bytes = c.terms.destination.element_bytes = 1;
    c.terms.limits = {nullptr, 0, most};
    for (const std::uint64_t over : {0, 1}) {
      c.source.dim[0] = c.destination.dim[0] = most / 256;
      c.source.dim[1] = c.destination.dim[1] = 256 + over;
      c.source.dim[2] = c.destination.dim[2] = 1;
      c.source.stride[0] = c.destination.stride[0] = 0;
      c.destination.stride[0] = most / 256;
      EXPECT_EQ(c.judged().bits & bits_of(fault::dim), over * bits_of(fault::dim)) << count << " tensors, " << over;
    }
  }
  EXPECT_EQ(detail::most_tensor_bytes(0), std::uint64_t{1} << 47);
  EXPECT_EQ(detail::most_tensor_bytes(65535), std::uint64_t{1} << 47) << "all smaller batches have the full limit";
}

/// No sum wraps, no matter where the batch ends.
TEST(judge_tensors, sums_of_batches_stay_below2_to63) {
  for (const std::uint64_t count : {1ull, 65535ull, 65536ull, 65537ull, (1ull << 20) + 3, 1ull << 24}) {
    const wide most = detail::most_tensor_bytes(count);
    for (std::uint64_t alignment = 1; alignment <= 1ull << 20; alignment *= 2) {
      EXPECT_TRUE((most + alignment - 1) / alignment * alignment * count < wide{1} << 63) << count;
    }
  }
}

TEST(judge_tensors, what_is_moved) {
  EXPECT_TRUE(detail::is_moved(0, shape_relation::equal));
  EXPECT_TRUE(detail::is_moved(bits_of(fault::truncated), shape_relation::clipped));
  EXPECT_FALSE(detail::is_moved(bits_of(fault::truncated), shape_relation::equal));
  EXPECT_FALSE(detail::is_moved(fault::truncated | fault::window, shape_relation::clipped));
  EXPECT_FALSE(detail::is_moved(empty_bit, shape_relation::clipped));
}

TEST(judge_tensors, bad_tensors_take_no_room_in_packed_buffers) {
  const auto room_of = [](const side_extents& side, std::uint64_t alignment, bool is_destination) {
    return detail::packed_bytes<3>(side, 4, alignment, {windows, 2}, is_destination);
  };
  side_extents side = judged_case{}.destination;
  EXPECT_EQ(room_of(side, 1, true), 256u);
  EXPECT_EQ(room_of(side, 512, true), 512u);
  side.stride[0] = 28;
  EXPECT_EQ(room_of(side, 1, true), 0u) << "elements that share bytes cannot be unpacked";
  EXPECT_EQ(room_of(side, 1, false), 256u) << "but packed";
  side.stride[0] = 32;
  side.address += 4;
  EXPECT_EQ(room_of(side, 1, true), 0u);
  EXPECT_EQ(room_of(side, 1, false), 0u);
  side.dim[1] = 0;
  EXPECT_EQ(room_of(side, 1, true), 0u);
}

side_extents extents_of(const plain_side& side) {
  side_extents extents{side.address, {1, 1, 1, 1, 1}, {}};
  std::copy(side.dim.begin(), side.dim.end(), extents.dim);
  std::copy(side.stride.begin(), side.stride.end(), extents.stride);
  return extents;
}

std::uint32_t judge_rank(std::uint32_t rank, const side_extents& source, const side_extents& destination,
                         const pair_terms& terms) {
  switch (rank) {
    case 1: return detail::judge_pair<1>(source, destination, terms).bits;
    case 2: return detail::judge_pair<2>(source, destination, terms).bits;
    case 3: return detail::judge_pair<3>(source, destination, terms).bits;
    case 4: return detail::judge_pair<4>(source, destination, terms).bits;
    default: return detail::judge_pair<5>(source, destination, terms).bits;
  }
}

struct drawn_case {
  plain_side source;
  plain_side destination;
  planning_rules rules;
  std::uint64_t begin{};
  std::uint64_t capacity{~0ull};  ///< of the buffer that the destination is packed in
};

drawn_case draw(random_source& random, shape_relation relation, std::uint32_t rank) {
  drawn_case drawn;
  std::tie(drawn.source, drawn.destination) = hostile_pair(random, relation, rank);
  drawn.rules.relation = relation;
  drawn.rules.source_is_dense = relation == shape_relation::corner;
  drawn.rules.source_element = random.pick<std::uint32_t>({1, 2, 3, 4, 8, 12, 16});
  drawn.rules.destination_element = random.pick<std::uint32_t>({1, 2, 3, 4, 8, 12, 16});
  drawn.rules.rule.piece_elements = 1024;
  drawn.rules.routes.allowed = {};
  drawn.rules.count = random.pick<std::uint64_t>({1, 1000, 1 << 16, 1 << 20, 1 << 24});
  if (random.one_in(2)) drawn.rules.windows = {{0, ~0ull}};
  if (random.one_in(2)) drawn.rules.windows.push_back({1 << 20, 1ull << 45});
  if (random.one_in(4)) drawn.rules.windows = {{1 << 20, 1ull << 30}};
  if (relation != shape_relation::equal || random.one_in(2)) return drawn;
  drawn.rules.destination_element = drawn.rules.source_element;
  drawn.begin = 16 * random.below(8);
  drawn.capacity = random.of_random_length(40);
  drawn.destination = packed_side(drawn.source, 0x7000000000 + drawn.begin, drawn.rules.source_element);
  return drawn;
}

TEST(judge_tensors, any_bits_as_a_slow_planner_would) {
  random_source random(19);
  std::uint32_t met = 0;
  std::uint32_t good = 0;
  for (std::uint32_t trial = 0; trial < 200000; ++trial) {
    const auto relation = static_cast<shape_relation>(trial % 5);
    const std::uint32_t rank = relation == shape_relation::swapped ? 2 + random.below32(4) : 1 + random.below32(5);
    const drawn_case drawn = draw(random, relation, rank);
    const planning_rules& rules = drawn.rules;
    const auto window_count = static_cast<std::uint32_t>(rules.windows.size());
    pair_terms terms{relation,
                     {rules.source_element, {}},
                     {rules.destination_element, {}},
                     {rules.windows.data(), window_count, detail::most_tensor_bytes(rules.count)}};
    if (drawn.capacity != ~0ull) terms.destination.room = {0x7000000000, drawn.capacity};
    const side_extents source = extents_of(drawn.source);
    const side_extents destination = extents_of(drawn.destination);
    const std::uint32_t expected =
        plan_slowly(drawn.source, drawn.destination, rules, 0, drawn.begin, drawn.capacity).status;
    ASSERT_EQ(judge_rank(rank, source, destination, terms), expected) << "trial " << trial << ", rank " << rank;
    ASSERT_EQ(judge_rank(max_rank, source, destination, terms), expected) << "trial " << trial << ", rank " << rank;
    met |= expected;
    good += expected == 0 ? 1 : 0;
  }
  EXPECT_EQ(met, empty_bit | 0x7f) << "a fault that never came up proves nothing";
  EXPECT_GT(good, 1000u);
}

TEST(judge_tensors, large_tensors_as_a_slow_planner_would) {
  random_source random(40);
  std::uint32_t good = 0;
  std::uint32_t bad = 0;
  for (std::uint32_t trial = 0; trial < 50000; ++trial) {
    planning_rules rules;
    rules.rule.piece_elements = 1024;
    rules.routes.allowed = {};
    rules.source_element = rules.destination_element = random.pick<std::uint32_t>({1, 2, 3, 4, 8, 12, 16});
    rules.count = random.pick<std::uint64_t>({1, 65535, 65536, 100000, 1 << 24});
    const std::uint32_t rank = 2 + random.below32(2);
    const auto most = static_cast<std::uint64_t>(slow::most_bytes(rules.count));
    const std::vector<std::uint64_t> dims = large_dims(random, rank, rules.source_element, most);
    const plain_side from = large_side(random, dims, rules.source_element, std::uint64_t{1} << 50);
    const plain_side to = large_side(random, dims, rules.source_element, std::uint64_t{1} << 55);
    const pair_terms terms{shape_relation::equal,
                           {rules.source_element, {}},
                           {rules.source_element, {}},
                           {nullptr, 0, detail::most_tensor_bytes(rules.count)}};
    const std::uint32_t expected = plan_slowly(from, to, rules, 0).status;
    ASSERT_EQ(judge_rank(rank, extents_of(from), extents_of(to), terms), expected) << "trial " << trial;
    good += expected == 0 ? 1 : 0;
    bad += (expected & bits_of(fault::dim)) != 0 ? 1 : 0;
  }
  EXPECT_GT(good, 10000u);
  EXPECT_GT(bad, 3000u);
}

}  // namespace
}  // namespace tmap::testing
