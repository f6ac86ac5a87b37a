// SPDX-License-Identifier: Apache-2.0
// Compares the moving operations with plain loops, byte for byte, and checks that they write
// nothing else. Covers every route alone and all mixed, every element size, rank and source, odd
// addresses and pitches.
#include <tmap/ragged.hpp>

#include <limits>
#include <string>

#include "device/gpu_fixture.hpp"
#include "device/recorded_call.hpp"
#include "ragged/route_settings.hpp"
#include "support/ragged_upload.hpp"

namespace tmap::ragged::testing {
namespace {

using namespace tmap::testing;

const cuda::stream_ref default_stream{cudaStream_t{}};

source_form random_form(random_source& random) {
  return static_cast<source_form>(random.below32(source_forms));
}

/// Holds the parameters of a random trial. Row forms need equal inner dims on both sides.
struct trial {
  std::uint32_t rank;
  std::uint32_t element_bytes;
  source_form forms[2];
  array_side sides[2];
  std::vector<extents> shapes;

  explicit trial(random_source& random) {
    rank = 1 + random.below32(max_rank);
    element_bytes = random.pick<std::uint32_t>({1, 2, 3, 4, 8, 12, 16});
    for (source_form& form : forms) form = random_form(random);
    for (array_side& side : sides) side = random.one_in(2) ? array_side::device : array_side::host;
    const std::uint64_t count = 1 + random.below(random.one_in(10) ? 1000 : 40);
    const std::uint64_t most = random.one_in(10) ? 100000 : 1 + random.below(5000);
    shapes = random_shapes(random,
                           {rank, count, most / (count > 100 ? 20 : 1) + 1, is_rows(forms[0]) || is_rows(forms[1]), 9});
  }

  std::string text(const route_setting& setting, std::uint64_t number) const {
    return std::string(setting.name) + ", trial " + std::to_string(number) + ", rank " + std::to_string(rank) +
           ", element " + std::to_string(element_bytes) + ", forms " +
           std::to_string(static_cast<std::uint32_t>(forms[0])) + " and " +
           std::to_string(static_cast<std::uint32_t>(forms[1]));
  }
};

/// Expects the statuses and the header of a batch without a bad tensor.
void expect_all_good(const std::vector<extents>& shapes, const device_array<tensor_status>& statuses,
                     const device_array<batch_header>& header) {
  const std::vector<tensor_status> found = statuses.download();
  std::uint32_t empty = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const bool is_empty = shapes[i].elements() == 0;
    empty += is_empty ? 1 : 0;
    ASSERT_EQ(found[i].bits, is_empty ? tensor_status::empty_bit : 0u) << "tensor " << i;
  }
  const batch_header totals = header.download().front();
  EXPECT_EQ(totals.bad_count, 0u);
  EXPECT_EQ(totals.first_bad, no_bad_item);
  EXPECT_EQ(totals.empty_count, empty);
}

class ragged_move : public gpu_test, public ::testing::WithParamInterface<route_setting> {};

TEST_P(ragged_move, copy) {
  random_source random(71);
  for (std::uint64_t number = 0; number < scaled(300); ++number) {
    const trial each(random);
    const host_batch source = lay_out(random, each.shapes, each.rank, each.element_bytes, each.forms[0]);
    host_batch destination = lay_out(random, each.shapes, each.rank, each.element_bytes, each.forms[1]);
    const device_side from(source, each.forms[0], each.sides[0]);
    const device_side to(destination, each.forms[1], each.sides[1]);
    const auto scratch = workspace_for(each.shapes.size(), each.rank);
    const device_array<tensor_status> statuses(each.shapes.size());
    const device_array<batch_header> header(1);
    run with = run_of(GetParam(), {default_stream, all_of(scratch)});
    with.statuses = statuses.data();
    with.header = header.data();
    TMAP_ASSERT_OK(copy(from.described(), to.described(), with));
    reference::copy(source, destination);
    expect_all_good(each.shapes, statuses, header);
    expect_bytes(destination.bytes, to.memory().download());
    ASSERT_FALSE(HasFailure()) << each.text(GetParam(), number);
  }
}

TEST_P(ragged_move, pack_and_unpack) {
  random_source random(72);
  for (std::uint64_t number = 0; number < scaled(200); ++number) {
    const trial each(random);
    const host_batch source = lay_out(random, each.shapes, each.rank, each.element_bytes, each.forms[0]);
    const std::uint64_t alignment = std::uint64_t{1} << random.below(9);
    const std::uint64_t start = 256 + random.below(4) * element_alignment(each.element_bytes);
    const std::vector<std::int64_t> begins = reference::packed_begins(source, alignment);
    std::vector<unsigned char> noise(start + static_cast<std::uint64_t>(begins.back()) + 256);
    for (unsigned char& byte : noise) byte = static_cast<unsigned char>(random.bits());
    host_batch packed = reference::packed_batch(source, alignment, start, noise);
    reference::copy(source, packed);

    const device_side from(source, each.forms[0], each.sides[0]);
    const device_array<unsigned char> buffer(noise);
    const device_array<std::int64_t> found_begins(begins.size());
    const auto scratch = workspace_for(each.shapes.size(), each.rank);
    packed_buffer described;
    described.memory = buffer.data() + start;
    described.bytes = static_cast<std::uint64_t>(begins.back());
    described.alignment = alignment;
    described.begins = random.one_in(2) ? found_begins.data() : nullptr;
    const run with = run_of(GetParam(), {default_stream, all_of(scratch)});
    TMAP_ASSERT_OK(pack(from.described(), described, with));
    expect_bytes(packed.bytes, buffer.download());
    if (described.begins != nullptr) {
      EXPECT_EQ(found_begins.download(), begins);
    }

    host_batch back = lay_out(random, each.shapes, each.rank, each.element_bytes, each.forms[1]);
    const device_side to(back, each.forms[1], each.sides[1]);
    TMAP_ASSERT_OK(unpack(described, to.described(), with));
    reference::copy(source, back);
    expect_bytes(back.bytes, to.memory().download());
    ASSERT_FALSE(HasFailure()) << each.text(GetParam(), number);
  }
}

TEST_P(ragged_move, pad_and_unpad) {
  random_source random(73);
  for (std::uint64_t number = 0; number < scaled(200); ++number) {
    const trial each(random);
    const std::uint64_t count = each.shapes.size();
    const host_batch source = lay_out(random, each.shapes, each.rank, each.element_bytes, each.forms[0]);
    const extents shape = random_shape(random, {each.rank, 1, 1 + random.below(4000), false, 0});
    host_dense dense = lay_out_dense(random, shape, count, each.rank, each.element_bytes);
    fill_value fill;
    for (unsigned char& byte : fill.bytes) byte = static_cast<unsigned char>(random.bits());
    const device_side from(source, each.forms[0], each.sides[0]);
    const device_array<unsigned char> memory(dense.batch.bytes);
    const dense_batch described = dense.described(memory.address());
    const auto scratch = workspace_for(count, each.rank);
    const run with = run_of(GetParam(), {default_stream, all_of(scratch)});
    TMAP_ASSERT_OK(pad(from.described(), described, fill, with));
    reference::pad(source, dense.batch, fill);
    expect_bytes(dense.batch.bytes, memory.download());

    host_batch back = lay_out(random, each.shapes, each.rank, each.element_bytes, each.forms[1]);
    const device_side to(back, each.forms[1], each.sides[1]);
    TMAP_ASSERT_OK(unpad(described, to.described(), with));
    reference::unpad(dense.batch, back);
    expect_bytes(back.bytes, to.memory().download());
    ASSERT_FALSE(HasFailure()) << each.text(GetParam(), number);
  }
}

/// Holds a matrix and the noise around it.
struct host_matrix {
  std::vector<unsigned char> bytes;
  row_matrix shape;

  host_matrix(random_source& random, std::uint64_t rows, std::uint64_t row_bytes) {
    const std::uint64_t unit = random.pick<std::uint64_t>({1, 4, 16});
    shape.address = 256 + unit * random.below(4);
    shape.rows = rows;
    shape.row_bytes = row_bytes;
    shape.pitch_bytes = (row_bytes + unit - 1) / unit * unit + unit * random.below(3);
    bytes.resize(shape.address + shape.pitch_bytes * rows + 256);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.bits());
  }
  std::uint64_t row(std::uint64_t i) const { return shape.address + i * shape.pitch_bytes; }
  row_matrix at(std::uint64_t address) const {
    row_matrix moved = shape;
    moved.address += address;
    return moved;
  }
};

template <class Index>
void run_rows(random_source& random, const run& with, bool scatters) {
  const std::uint64_t row_bytes = 1 + random.below(random.one_in(4) ? 20000 : 300);
  const std::uint64_t rows = 1 + random.below(300);
  const std::uint64_t count = 1 + random.below(rows);
  const std::uint64_t row_unit = random.one_in(2) ? 16 : 1;
  const std::uint64_t bytes = (row_bytes + row_unit - 1) / row_unit * row_unit;
  const host_matrix source(random, rows, bytes);
  host_matrix destination(random, rows, bytes);
  std::vector<Index> index(rows);
  for (std::uint64_t i = 0; i < rows; ++i) index[i] = static_cast<Index>(i);
  for (std::uint64_t i = rows - 1; i > 0; --i) std::swap(index[i], index[random.below(i + 1)]);
  index.resize(count);
  if (!scatters) index[random.below(count)] = index[0];
  index[random.below(count)] = random.pick<Index>({-1, static_cast<Index>(rows), std::numeric_limits<Index>::min()});
  const device_array<unsigned char> from(source.bytes);
  const device_array<unsigned char> to(destination.bytes);
  const device_array<Index> numbers(index);
  const device_array<tensor_status> statuses(count);
  const device_array<batch_header> header(1);
  run asked = with;
  asked.statuses = statuses.data();
  asked.header = header.data();
  const row_index described{numbers.data(), count, sizeof(Index)};
  const auto call = scatters ? scatter_rows : gather_rows;
  TMAP_ASSERT_OK(call(source.at(from.address()), described, destination.at(to.address()), asked));
  const std::vector<tensor_status> found = statuses.download();
  std::uint32_t bad = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool is_bad = index[i] < 0 || static_cast<std::uint64_t>(index[i]) >= rows;
    bad += is_bad ? 1 : 0;
    ASSERT_EQ(found[i].bits, is_bad ? static_cast<std::uint32_t>(fault::index) : 0u) << "row " << i;
    if (is_bad) continue;
    const auto number = static_cast<std::uint64_t>(index[i]);
    std::memcpy(destination.bytes.data() + destination.row(scatters ? number : i),
                source.bytes.data() + source.row(scatters ? i : number), bytes);
  }
  EXPECT_EQ(header.download().front().bad_count, bad);
  expect_bytes(destination.bytes, to.download());
}

TEST_P(ragged_move, gather_and_scatter) {
  random_source random(74);
  for (std::uint64_t number = 0; number < scaled(200); ++number) {
    run_rows<std::int32_t>(random, run_of(GetParam(), {default_stream}), number % 2 == 0);
    run_rows<std::int64_t>(random, run_of(GetParam(), {default_stream}), number % 2 == 0);
    ASSERT_FALSE(HasFailure()) << GetParam().name << ", trial " << number;
  }
}

/// Every fourth tensor is bad in a different way. The others are moved, and nothing else is
/// written.
TEST_P(ragged_move, bad_tensors_are_left_out) {
  random_source random(75);
  const shape_range range{2, 400, 2000, false, 0};
  const std::vector<extents> shapes = random_shapes(random, range);
  const host_batch source = lay_out(random, shapes, 2, 4, source_form::array);
  host_batch destination = lay_out(random, shapes, 2, 4, source_form::array);
  const device_side from(source, source_form::array, array_side::device);
  const device_side to(destination, source_form::array, array_side::device);
  const patch_array* const given = std::get_if<patch_array>(&from.described().tensors);
  std::vector<map_patch> patches(shapes.size());
  TMAP_ASSERT_CUDA(
      cudaMemcpy(patches.data(), given->patches, patches.size() * sizeof(map_patch), cudaMemcpyDeviceToHost));
  std::vector<std::uint32_t> expected(shapes.size());
  for (std::uint64_t i = 0; i < patches.size(); i += 4) {
    map_patch& patch = patches[i];
    const auto spoil = [&](fault f, auto& field, std::uint64_t value) {
      expected[i] |= static_cast<std::uint32_t>(f);
      field = value;
    };
    if (i % 16 == 0) spoil(fault::address, patch.global_address, 0);
    if (i % 16 == 4) spoil(fault::address, patch.global_address, patch.global_address + 2);
    if (i % 16 == 8) spoil(fault::dim, patch.global_dim[1], ~0ull);
    if (i % 16 == 8)
      expected[i] |= static_cast<std::uint32_t>(fault::mismatch) | static_cast<std::uint32_t>(fault::stride);
    if (i % 16 == 12) spoil(fault::mismatch, patch.global_dim[0], patch.global_dim[0] + 1);
  }
  const device_array<map_patch> spoiled(patches);
  tensor_batch asked = from.described();
  asked.tensors = patch_array{spoiled.data()};
  const device_array<tensor_status> statuses(shapes.size());
  const device_array<batch_header> header(1);
  const auto scratch = workspace_for(shapes.size(), 2);
  run with = run_of(GetParam(), {default_stream, all_of(scratch)});
  with.statuses = statuses.data();
  with.header = header.data();
  TMAP_ASSERT_OK(copy(asked, to.described(), with));
  for (std::uint64_t i = 0; i < shapes.size(); ++i) {
    if (expected[i] == 0) reference::copy_tensor(source, destination, i, shapes[i]);
  }
  const std::vector<tensor_status> found = statuses.download();
  for (std::uint64_t i = 0; i < shapes.size(); ++i) ASSERT_EQ(found[i].bits, expected[i]) << "tensor " << i;
  EXPECT_EQ(header.download().front().bad_count, 100u);
  EXPECT_EQ(header.download().front().first_bad, 0u);
  expect_bytes(destination.bytes, to.memory().download());
}

/// A captured operation reads its arrays again at each replay.
TEST_P(ragged_move, a_captured_graph_replays_with_other_shapes_and_addresses) {
  random_source random(76);
  constexpr std::uint64_t count = 64;
  const device_array<map_patch> patches[2] = {device_array<map_patch>(count), device_array<map_patch>(count)};
  tensor_batch sides[2];
  for (int side = 0; side < 2; ++side) {
    sides[side].tensors = patch_array{patches[side].data()};
    sides[side].count = count;
    sides[side].element_bytes = 2;
    sides[side].rank = 3;
  }
  const auto scratch = workspace_for(count, 3);
  const recorded_call graph([&](cudaStream_t stream) {
    return copy(sides[0], sides[1], run_of(GetParam(), {stream, all_of(scratch)}));
  });
  for (int replay = 0; replay < 10; ++replay) {
    const std::vector<extents> shapes = random_shapes(random, {3, count, 3000, false, 9});
    const host_batch source = lay_out(random, shapes, 3, 2, source_form::array);
    host_batch destination = lay_out(random, shapes, 3, 2, source_form::array);
    const device_side from(source, source_form::array, array_side::device);
    const device_side to(destination, source_form::array, array_side::device);
    for (int side = 0; side < 2; ++side) {
      const tensor_batch& described = (side == 0 ? from : to).described();
      TMAP_ASSERT_CUDA(cudaMemcpy(patches[side].data(), std::get<patch_array>(described.tensors).patches,
                                  patches[side].bytes(), cudaMemcpyDeviceToDevice));
    }
    graph.replay();
    reference::copy(source, destination);
    expect_bytes(destination.bytes, to.memory().download());
    ASSERT_FALSE(HasFailure()) << GetParam().name << ", replay " << replay;
  }
}

INSTANTIATE_TEST_SUITE_P(routes, ragged_move, ::testing::ValuesIn(settings), name_of);

}  // namespace
}  // namespace tmap::ragged::testing
