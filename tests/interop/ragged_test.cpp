// SPDX-License-Identifier: Apache-2.0
// Tests routes and ragged operations of C without a device. A refusal by the C++ function shows
// that the arguments reach it. Operations on the host test the conversions.
#include <tmap/ragged.hpp>
#include <tmap/route.hpp>

#include <string>
#include <vector>

#include "interop/no_stream.hpp"
#include "interop/refuses_bad_structs.hpp"
#include "interop/sized.hpp"
#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing {
namespace {

tmap_tensor_batch c_batch(std::uint32_t element_bytes = 4) {
  static const std::uint64_t column[] = {1 << 20, 1 << 20};
  tmap_tensor_batch batch{};
  batch.struct_size = sizeof batch;
  batch.element_bytes = element_bytes;
  batch.rank = 2;
  batch.count = 2;
  batch.tensors.struct_size = sizeof batch.tensors;
  batch.tensors.kind = TMAP_SOURCE_COLUMNS;
  batch.tensors.of.columns.global_address = column;
  batch.tensors.of.columns.global_dim[0] = column;
  batch.tensors.of.columns.global_dim[1] = column;
  return batch;
}

tmap_row_matrix c_rows() {
  tmap_row_matrix rows = sized<tmap_row_matrix>();
  rows.address = 1 << 20;
  rows.rows = 8;
  rows.row_bytes = 64;
  rows.pitch_bytes = 64;
  return rows;
}

tmap_dense_batch c_dense() {
  tmap_dense_batch dense = sized<tmap_dense_batch>();
  dense.address = 1 << 20;
  dense.dim[0] = 8;
  dense.dim[1] = 4;
  return dense;
}

tmap_packed_buffer c_packed() {
  tmap_packed_buffer packed = sized<tmap_packed_buffer>();
  packed.memory = reinterpret_cast<void*>(std::uintptr_t{1} << 20);
  packed.bytes = 4096;
  return packed;
}

tmap_cast_values c_values() {
  tmap_cast_values values = sized<tmap_cast_values>();
  values.from = TMAP_VALUE_F32;
  values.to = TMAP_VALUE_F32;
  values.scale = 1;
  return values;
}

/// Expects the same refusal from both interfaces.
void expect_same(tmap_status answer, const result<void>& expected, const std::string& what,
                 const std::string& argument = "call.workspace_bytes") {
  ASSERT_FALSE(expected.has_value()) << what;
  EXPECT_EQ(expected.error().code, status::invalid_argument) << what;
  EXPECT_EQ(answer, static_cast<tmap_status>(expected.error().code)) << what;
  tmap_error last = sized<tmap_error>();
  ASSERT_EQ(tmap_last_error(&last), TMAP_OK);
  EXPECT_EQ(last.found, expected.error().found) << what;
  EXPECT_EQ(last.allowed, expected.error().allowed) << what;
  EXPECT_EQ(last.argument, argument) << what;
}

TEST(c_route, is_chosen_as_in_cpp) {
  random_source random{3};
  for (int i = 0; i < 20000; ++i) {
    tmap_tensor_layout c = sized<tmap_tensor_layout>();
    tensor_layout layout;
    layout.address = c.address = random.of_random_length(48) & ~random.pick<std::uint64_t>({0, 3, 15});
    layout.element_bytes = c.element_bytes = random.below32(17);
    layout.rank = c.rank = random.below32(7);
    for (std::uint32_t axis = 0; axis < 5; ++axis) layout.dim[axis] = c.dim[axis] = random.of_random_length(33);
    for (std::uint32_t axis = 0; axis < 4; ++axis) {
      layout.stride_bytes[axis] = c.stride_bytes[axis] =
          random.of_random_length(41) * random.pick<std::uint64_t>({1, 16});
    }
    const std::uint32_t policy = random.below32(4);
    const std::uint32_t allowed = random.below32(16);
    const route_policy meant = policy == 0 ? route_policy::enable : static_cast<route_policy>(policy - 1);
    const route_choice expected = choose_route(layout, {meant, allowed == 0 ? all_routes : route_set{allowed}});
    std::uint32_t route = 77;
    std::uint32_t reason = 77;
    ASSERT_EQ(tmap_choose_route(&c, policy, allowed, &route, &reason), TMAP_OK);
    ASSERT_EQ(route, static_cast<std::uint32_t>(expected.way));
    ASSERT_EQ(reason, static_cast<std::uint32_t>(expected.why));
  }
}

TEST(c_route, refuses_what_it_does_not_know) {
  const tmap_tensor_layout layout = sized<tmap_tensor_layout>();
  std::uint32_t route = 77;
  std::uint32_t reason = 77;
  refuses_bad_structs<tmap_tensor_layout>(layout, [&](auto* l) { return tmap_choose_route(l, 0, 0, &route, &reason); });
  EXPECT_EQ(refused(tmap_choose_route(&layout, 4, 0, &route, &reason)), "policy");
  EXPECT_EQ(refused(tmap_choose_route(&layout, 0, 16, &route, &reason)), "allowed");
  EXPECT_EQ(refused(tmap_choose_route(&layout, 0, 0, nullptr, &reason)), "route");
  EXPECT_EQ(refused(tmap_choose_route(&layout, 0, 0, &route, nullptr)), "reason");
  EXPECT_EQ(route, 77u);
  EXPECT_EQ(reason, 77u);
}

TEST(c_ragged, workspace_is_as_large_as_in_cpp) {
  std::uint64_t bytes = 77;
  EXPECT_EQ(refused(tmap_ragged_workspace_bytes(10, 6, &bytes)), "rank");
  EXPECT_EQ(refused(tmap_ragged_workspace_bytes(10, 2, nullptr)), "bytes");
  EXPECT_EQ(bytes, 77u);
  EXPECT_EQ(tmap_ragged_workspace_bytes(10, 2, &bytes), TMAP_OK);
  EXPECT_EQ(bytes, ragged::workspace_bytes(10, 2).value());
}

/// Makes calls that are legal except for their workspace, which is one byte long.
TEST(c_ragged, arguments_reach_their_operations) {
  const tmap_tensor_batch a = c_batch();
  const tensor_batch b = interop::library_of(a);
  const tmap_dense_batch dense = c_dense();
  const tmap_packed_buffer packed = c_packed();
  const tmap_cast_values values = c_values();
  auto* const memory = reinterpret_cast<void*>(std::uintptr_t{1} << 20);
  const ragged::run small{on_stream{no_stream, {memory, 1}}};
  const tmap_call call = call_in(memory, 1);
  const ragged::packed_buffer packed_side = interop::library_of(packed);
  const dense_batch dense_side = interop::library_of(dense);
  expect_same(tmap_ragged_copy(&a, &a, &call), ragged::copy(b, b, small), "copy");
  expect_same(tmap_ragged_pack(&a, &packed, &call), ragged::pack(b, packed_side, small), "pack");
  expect_same(tmap_ragged_unpack(&packed, &a, &call), ragged::unpack(packed_side, b, small), "unpack");
  expect_same(tmap_ragged_pad(&a, &dense, nullptr, &call), ragged::pad(b, dense_side, {}, small), "pad");
  expect_same(tmap_ragged_unpad(&dense, &a, &call), ragged::unpad(dense_side, b, small), "unpad");
  expect_same(tmap_ragged_transpose(&a, &a, &call), ragged::transpose(b, b, small), "transpose");
  expect_same(tmap_ragged_cast(&a, &a, &values, &call),
              ragged::cast(b, b, {ragged::value_type::f32, ragged::value_type::f32}, small), "cast");
  expect_same(tmap_ragged_saxpy(2, &a, &a, &call), ragged::saxpy(2, b, b, small), "saxpy");
  expect_same(tmap_ragged_max_pool_1d(&a, &a, 1, &call), ragged::max_pool_1d(b, b, 1, small), "max_pool_1d");
  expect_same(tmap_ragged_reduce_rows(&a, TMAP_VALUE_F32, TMAP_ROWS_MAX, &a, &call),
              ragged::reduce_rows(b, ragged::value_type::f32, ragged::row_reduction::max, b, small), "reduce_rows");
  tmap_tensor_batch bytes = a;
  bytes.element_bytes = 1;
  tmap_quantize_values quantized = sized<tmap_quantize_values>();
  quantized.from = TMAP_VALUE_F32;
  quantized.to = TMAP_VALUE_F8_E5M2;
  expect_same(tmap_ragged_quantize(&a, &bytes, &a, &quantized, &call),
              ragged::quantize(b, interop::library_of(bytes), b, interop::library_of(quantized), small), "quantize");
  expect_same(tmap_ragged_column_sums(&a, TMAP_VALUE_F32, &a, TMAP_VALUE_F32, &call),
              ragged::column_sums(b, ragged::value_type::f32, b, ragged::value_type::f32, small), "column_sums");
}

TEST(c_ragged, rows_reach_their_operations) {
  const tmap_row_matrix rows = c_rows();
  const ragged::row_matrix matrix = interop::library_of(rows);
  tmap_row_index index = sized<tmap_row_index>();
  index.rows = reinterpret_cast<void*>(std::uintptr_t{1} << 20);
  index.count = 4;
  index.bytes = 3;
  const ragged::row_index odd{index.rows, 4, 3};
  expect_same(tmap_ragged_gather_rows(&rows, &index, &rows, nullptr),
              ragged::gather_rows(matrix, odd, matrix, {on_stream{no_stream}}), "gather_rows", "index.bytes");
  expect_same(tmap_ragged_scatter_rows(&rows, &index, &rows, nullptr),
              ragged::scatter_rows(matrix, odd, matrix, {on_stream{no_stream}}), "scatter_rows", "index.bytes");
}

TEST(c_ragged, batches_and_calls_are_checked) {
  const tmap_tensor_batch a = c_batch();
  const auto copy = [&](const tmap_tensor_batch* from, const tmap_tensor_batch* to, const tmap_call* with = nullptr) {
    const tmap_status answer = tmap_ragged_copy(from, to, with);
    // Without a workspace, even a good call is refused for that reason.
    return refused(answer) == "call.workspace_bytes" ? tmap_status{TMAP_OK} : answer;
  };
  EXPECT_EQ(copy(&a, &a), TMAP_OK);
  refuses_bad_structs<tmap_tensor_batch>(a, [&](auto* side) { return copy(side, &a); });
  refuses_bad_structs<tmap_tensor_batch>(a, [&](auto* side) { return copy(&a, side); });
  tmap_tensor_batch bad = a;
  bad.arrays_on_host = 2;
  EXPECT_EQ(refused(copy(&bad, &a)), "source.arrays_on_host");
  bad = a;
  bad.tensors.kind = 4;
  EXPECT_EQ(refused(copy(&a, &bad)), "destination.tensors.kind");
  bad = a;
  bad.tensors.struct_size = 0;
  EXPECT_EQ(refused(copy(&a, &bad)), "destination.tensors.struct_size");
  tmap_call with = sized<tmap_call>();
  EXPECT_EQ(copy(&a, &a, &with), TMAP_OK);
  refuses_bad_structs<tmap_call>(
      with, [&](auto* o) { return copy(&a, &a, o); }, true);
  with.policy = 4;
  EXPECT_EQ(refused(copy(&a, &a, &with)), "call.policy");
  with.policy = 0;
  with.allowed = 16;
  EXPECT_EQ(refused(copy(&a, &a, &with)), "call.allowed");
  with.allowed = 0;
  with.check = 3;
  EXPECT_EQ(refused(copy(&a, &a, &with)), "call.check");
  with.check = TMAP_CHECK_SYNC;
  EXPECT_EQ(copy(&a, &a, &with), TMAP_OK);
}

/// Members that a call does not use must be 0.
TEST(c_ragged, members_of_other_calls_are_refused) {
  const tmap_tensor_batch a = c_batch();
  const tmap_row_matrix rows = c_rows();
  const tmap_row_index index = sized<tmap_row_index>();
  auto* const memory = reinterpret_cast<void*>(std::uintptr_t{1} << 20);
  const auto refusal = [&](std::uint32_t engine, const auto& use, bool by_index = false) {
    tmap_call call = sized<tmap_call>();
    call.engine = engine;
    use(call);
    return refused(by_index ? tmap_ragged_gather_rows(&rows, &index, &rows, &call) : tmap_ragged_copy(&a, &a, &call));
  };
  for (const std::uint32_t engine : {TMAP_ON_STREAM, TMAP_ON_HOST}) {
    EXPECT_EQ(refusal(engine, [](tmap_call& c) { c.plan = 1; }), "call.plan");
    EXPECT_EQ(refusal(engine, [](tmap_call& c) { c.trusted = 1; }), "call.trusted");
    EXPECT_EQ(refusal(engine, [](tmap_call& c) { c.publish = 1; }), "call.publish");
    EXPECT_EQ(refusal(
                  engine, [&](tmap_call& c) { c.workspace = memory; }, true),
              "call.workspace");
    EXPECT_EQ(refusal(
                  engine, [](tmap_call& c) { c.window_count = 1; }, true),
              "call.windows");
  }
  EXPECT_EQ(refusal(TMAP_ON_HOST, [&](tmap_call& c) { c.workspace = memory; }), "call.workspace");
  EXPECT_EQ(refusal(TMAP_ON_HOST, [](tmap_call& c) { c.workspace_bytes = 1; }), "call.workspace_bytes");
  EXPECT_EQ(refusal(TMAP_ON_HOST, [&](tmap_call& c) { c.stream = static_cast<tmap_stream>(memory); }), "call.stream");
  EXPECT_EQ(refusal(2, [](tmap_call&) {}), "call.engine");
}

TEST(c_ragged, padding_of_rows_takes_an_engine_and_a_stream_alone) {
  std::uint16_t value = 1, dense = 0;
  const std::int32_t end = 1;
  tmap_padded_rows rows = sized<tmap_padded_rows>();
  rows.values = reinterpret_cast<std::uint64_t>(&value);
  rows.dense = reinterpret_cast<std::uint64_t>(&dense);
  rows.rows = rows.count = rows.longest = 1;
  rows.row_bytes = rows.element_bytes = 2;
  rows.offsets.values = &end;
  rows.offsets.bytes = 4;
  const auto refusal = [&](const auto& use) {
    tmap_call call = sized<tmap_call>();
    call.engine = TMAP_ON_HOST;
    use(call);
    const std::string name = refused(tmap_ragged_pad_rows(&rows, nullptr, &call));
    EXPECT_EQ(refused(tmap_ragged_unpad_rows(&rows, &call)), name);
    return name;
  };
  std::uint32_t word = 0;
  tmap_batch_header header{};
  EXPECT_EQ(refusal([](tmap_call& c) { c.policy = 1; }), "call.policy");
  EXPECT_EQ(refusal([](tmap_call& c) { c.allowed = 1; }), "call.allowed");
  EXPECT_EQ(refusal([&](tmap_call& c) { c.workspace = &word; }), "call.workspace");
  EXPECT_EQ(refusal([](tmap_call& c) { c.window_count = 1; }), "call.windows");
  EXPECT_EQ(refusal([&](tmap_call& c) { c.statuses = &word; }), "call.statuses");
  EXPECT_EQ(refusal([&](tmap_call& c) { c.header = &header; }), "call.header");
  EXPECT_EQ(refusal([](tmap_call& c) { c.check = TMAP_CHECK_SYNC; }), "");
  EXPECT_EQ(dense, 1);
}

TEST(c_ragged, other_arguments_are_checked) {
  const tmap_tensor_batch a = c_batch();
  const tmap_dense_batch dense = c_dense();
  const tmap_packed_buffer packed = c_packed();
  const tmap_row_matrix rows = c_rows();
  tmap_row_index index = sized<tmap_row_index>();
  refuses_bad_structs<tmap_packed_buffer>(packed, [&](auto* p) { return tmap_ragged_pack(&a, p, nullptr); });
  refuses_bad_structs<tmap_dense_batch>(dense, [&](auto* d) { return tmap_ragged_pad(&a, d, nullptr, nullptr); });
  refuses_bad_structs<tmap_row_matrix>(rows,
                                       [&](auto* r) { return tmap_ragged_gather_rows(r, &index, &rows, nullptr); });
  refuses_bad_structs<tmap_row_index>(index,
                                      [&](auto* i) { return tmap_ragged_scatter_rows(&rows, i, &rows, nullptr); });
  refuses_bad_structs<tmap_cast_values>(c_values(), [&](auto* v) { return tmap_ragged_cast(&a, &a, v, nullptr); });
  tmap_cast_values values = c_values();
  values.to = 6;
  EXPECT_EQ(refused(tmap_ragged_cast(&a, &a, &values, nullptr)), "values.to");
  EXPECT_EQ(refused(tmap_ragged_reduce_rows(&a, 6, 0, &a, nullptr)), "type");
  EXPECT_EQ(refused(tmap_ragged_reduce_rows(&a, 3, 2, &a, nullptr)), "reduction");
}

/// Copies rows of 3 bytes each, by columns in host memory, to a dense buffer and to a packed one.
TEST(c_ragged, converted_sides_and_calls_do_the_work) {
  const std::vector<unsigned char> bytes{1, 2, 3, 4, 5, 6, 7, 8};
  const auto address = reinterpret_cast<std::uint64_t>(bytes.data());
  const std::uint64_t addresses[] = {address, address + 3, 0};
  const std::uint64_t width[] = {3, 2, 1};
  const std::uint64_t height[] = {1, 2, 1};
  tmap_tensor_batch source = c_batch(1);
  source.count = 3;
  source.arrays_on_host = 1;
  source.tensors.of.columns.global_address = addresses;
  source.tensors.of.columns.global_dim[0] = width;
  source.tensors.of.columns.global_dim[1] = height;
  std::vector<unsigned char> packed(16, 0xaa);
  tmap_packed_buffer to = sized<tmap_packed_buffer>();
  std::int64_t begins[4] = {};
  to.memory = packed.data();
  to.bytes = 12;
  to.alignment = 4;
  to.begins = begins;
  std::uint32_t statuses[3] = {7, 7, 7};
  tmap_call with = host_call();
  with.policy = TMAP_POLICY_DISABLE;
  with.statuses = statuses;
  alignas(16) tmap_batch_header header{};
  with.header = &header;
  ASSERT_TRUE(ragged::pack(interop::library_of(source), interop::library_of(to), interop::ragged_call{&with}.value()));
  EXPECT_EQ(packed,
            (std::vector<unsigned char>{1, 2, 3, 0xaa, 4, 5, 6, 7, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa}));
  EXPECT_EQ(begins[1], 4);
  EXPECT_EQ(statuses[0], 0u);
  EXPECT_EQ(statuses[1], 0u);
  EXPECT_EQ(statuses[2], static_cast<std::uint32_t>(ragged::fault::address));
  EXPECT_EQ(header.bad_count, 1u);
  EXPECT_EQ(header.first_bad, 2u);
}

}  // namespace
}  // namespace tmap::testing
