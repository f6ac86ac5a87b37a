// SPDX-License-Identifier: Apache-2.0
// Tests every ragged operation in C with each of its arguments broken in turn: structs, enums,
// sizes and arrays. Operations on the host must refuse the call and write nothing. For operations
// on the device, C's own checks must refuse what they can see.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <tmap/encode_batch.hpp>

#include "interop/hostile_ragged_cases.hpp"
#include "interop/refuses_bad_structs.hpp"
#include "interop/sized.hpp"
#include "lib/interop/convert.hpp"

namespace tmap::testing {
namespace {

using namespace hostile_ragged_cases;

bool has(const c_call& call, const spoiling& with) {
  return (call.parts & with.parts) == with.parts;
}

/// Returns the argument's name as the call uses it.
std::string name_in(const c_call& call, const std::string& argument) {
  const std::size_t dot = std::min(argument.find('.'), argument.size());
  const std::string member = argument.substr(0, dot);
  const std::string rest = argument.substr(dot);
  const bool is_saxpy = std::string{call.name} == "saxpy";
  if (member == "source" && is_saxpy) return "x" + rest;
  if (member == "destination" && is_saxpy) return "y" + rest;
  if (member == "dense" || member == "packed") return ((call.parts & source) != 0 ? "destination" : "source") + rest;
  if (member == "quantized") return "values" + rest;
  if (member == "from") return "source" + rest;
  if (member == "to") return "destination" + rest;
  if (member == "walked") return (std::string{call.name} == "scatter_rows" ? "source" : "destination") + rest;
  return argument;
}

/// Expects a refusal, and that every byte that a pointer leads to is unchanged.
void expect_refused_on_host(const c_call& call, const spoiling& with) {
  SCOPED_TRACE(std::string{call.name} + ", " + with.argument);
  call_arguments given;
  given.words.fill(0x77);
  with.spoil(given);
  const auto out = given.out;
  const auto other = given.other;
  const auto words = given.words;
  const auto header = given.header;
  EXPECT_EQ(refused(run_on_host(call, given)), name_in(call, with.argument));
  EXPECT_EQ(given.out, out);
  EXPECT_EQ(given.other, other);
  EXPECT_EQ(given.words, words);
  EXPECT_EQ(given.header, header);
}

TEST(hostile_ragged, on_the_host_each_runs_with_what_is_not_spoilt) {
  for (const c_call& call : all_calls()) {
    call_arguments given;
    given.call.statuses = given.words.data();
    given.call.header = reinterpret_cast<tmap_batch_header*>(given.header.data());
    EXPECT_EQ(run_on_host(call, given), TMAP_OK) << call.name;
    EXPECT_EQ(given.words[0], 0u) << call.name;
    EXPECT_EQ(given.words[1], 0u) << call.name;
  }
}

TEST(hostile_ragged, on_the_host_each_argument_is_refused) {
  for (const c_call& call : all_calls()) {
    for (const auto& spoilings : {known_to_c(), known_to_the_operation()}) {
      for (const spoiling& with : spoilings) {
        if (has(call, with)) expect_refused_on_host(call, with);
      }
    }
  }
}

/// Without a workspace, the operation refuses good arguments, too, but only for that reason.
TEST(hostile_ragged, on_the_device_good_arguments_lack_the_workspace_alone) {
  for (const c_call& call : all_calls()) {
    call_arguments good;
    EXPECT_EQ(refused(run_on_device(call, good)), (call.parts & index) != 0 ? "" : "call.workspace_bytes") << call.name;
  }
}

TEST(hostile_ragged, on_the_device_each_argument_is_refused_before_anything_is_asked_of_one) {
  for (const c_call& call : all_calls()) {
    for (const auto& spoilings : {known_to_c(), known_to_the_operation()}) {
      for (const spoiling& with : spoilings) {
        const bool needs_index = with.argument == "walked.rows" || with.argument == "index.rows";
        if (!has(call, with) || needs_index) continue;  // an index of nothing is never read
        SCOPED_TRACE(std::string{call.name} + ", " + with.argument);
        call_arguments given;
        with.spoil(given);
        EXPECT_EQ(refused(run_on_device(call, given)), name_in(call, with.argument));
      }
    }
  }
}

/// The message must name the member and the values that it may have.
TEST(hostile_ragged, the_types_of_a_cast_are_named) {
  for (const bool is_from : {true, false}) {
    call_arguments given;
    (is_from ? given.values.from : given.values.to) = 6;
    ASSERT_EQ(tmap_ragged_cast(&given.source, &given.destination, &given.values, nullptr), TMAP_INVALID_ARGUMENT);
    char text[256] = {};
    ASSERT_EQ(tmap_last_message(text, sizeof text, nullptr), TMAP_OK);
    EXPECT_EQ(std::string{text}, std::string{"tmap_ragged_cast: `values."} + (is_from ? "from" : "to") +
                                     "` is 6, which stands for nothing; it must be one of 0 to 5");
  }
}

/// Reads a fill of up to the largest element. A larger fill is not read, because its call will be
/// refused.
TEST(hostile_ragged, a_fill_is_read_as_far_as_elements_may_be_large) {
  std::array<unsigned char, 17> fill;
  fill.fill(0xee);
  for (const std::uint32_t bytes : {1u, 4u, 16u}) {
    const ragged::fill_value made = interop::fill_of(fill.data(), bytes);
    for (std::uint32_t i = 0; i < sizeof made.bytes; ++i) {
      EXPECT_EQ(static_cast<unsigned>(made.bytes[i]), i < bytes ? 0xeeu : 0u) << bytes;
    }
  }
  for (const std::uint32_t bytes : {17u, ~0u}) {
    const ragged::fill_value made = interop::fill_of(fill.data(), bytes);
    for (const auto byte : made.bytes) EXPECT_EQ(static_cast<unsigned>(byte), 0u) << bytes;
  }
}

/// Tests each pointer to a struct with null and misaligned addresses. The pointer to the call may
/// be null.
TEST(hostile_ragged, pointers_to_structs) {
  call_arguments g;
  const tmap_call on_host = host_call();
  using batch = tmap_tensor_batch;
  using matrix = tmap_row_matrix;
  const auto refuses = [](const auto& good, const auto& use, bool may_be_null = false) {
    refuses_bad_structs<std::decay_t<decltype(good)>>(good, use, may_be_null);
  };
  refuses(g.source, [&](batch* s) { return tmap_ragged_pack(s, &g.packed, &on_host); });
  refuses(g.source, [&](batch* s) { return tmap_ragged_pad(s, &g.dense, nullptr, &on_host); });
  refuses(g.source, [&](batch* s) { return tmap_ragged_transpose(s, &g.destination, &on_host); });
  refuses(g.source, [&](batch* s) { return tmap_ragged_saxpy(1, s, &g.destination, &on_host); });
  refuses(g.source, [&](batch* s) { return tmap_ragged_max_pool_1d(s, &g.destination, 1, &on_host); });
  refuses(g.source, [&](batch* s) { return tmap_ragged_cast(s, &g.destination, &g.values, &on_host); });
  refuses(g.source, [&](batch* s) {
    return tmap_ragged_reduce_rows(s, TMAP_VALUE_F32, TMAP_ROWS_SUM, &g.destination, &on_host);
  });
  refuses(g.destination, [&](batch* d) { return tmap_ragged_unpack(&g.packed, d, &on_host); });
  refuses(g.destination, [&](batch* d) { return tmap_ragged_unpad(&g.dense, d, &on_host); });
  refuses(g.destination, [&](batch* d) { return tmap_ragged_transpose(&g.source, d, &on_host); });
  refuses(g.destination, [&](batch* d) { return tmap_ragged_saxpy(1, &g.source, d, &on_host); });
  refuses(g.destination, [&](batch* d) { return tmap_ragged_max_pool_1d(&g.source, d, 1, &on_host); });
  refuses(g.destination, [&](batch* d) { return tmap_ragged_cast(&g.source, d, &g.values, &on_host); });
  refuses(g.destination,
          [&](batch* d) { return tmap_ragged_reduce_rows(&g.source, TMAP_VALUE_F32, TMAP_ROWS_SUM, d, &on_host); });
  refuses(g.scales,
          [&](batch* s) { return tmap_ragged_quantize(&g.source, &g.destination, s, &g.quantized, &on_host); });
  refuses(g.quantized, [&](tmap_quantize_values* v) {
    return tmap_ragged_quantize(&g.source, &g.destination, &g.scales, v, &on_host);
  });
  refuses(g.packed, [&](tmap_packed_buffer* p) { return tmap_ragged_pack(&g.source, p, &on_host); });
  refuses(g.packed, [&](tmap_packed_buffer* p) { return tmap_ragged_unpack(p, &g.destination, &on_host); });
  refuses(g.dense, [&](tmap_dense_batch* d) { return tmap_ragged_pad(&g.source, d, nullptr, &on_host); });
  refuses(g.dense, [&](tmap_dense_batch* d) { return tmap_ragged_unpad(d, &g.destination, &on_host); });
  refuses(g.from, [&](matrix* m) { return tmap_ragged_gather_rows(m, &g.index, &g.to, &on_host); });
  refuses(g.to, [&](matrix* m) { return tmap_ragged_gather_rows(&g.from, &g.index, m, &on_host); });
  refuses(g.to, [&](matrix* m) { return tmap_ragged_scatter_rows(&g.from, &g.index, m, &on_host); });
  refuses(g.index, [&](tmap_row_index* i) { return tmap_ragged_scatter_rows(&g.from, i, &g.to, &on_host); });
  refuses(
      on_host, [&](auto* o) { return tmap_ragged_gather_rows(&g.from, &g.index, &g.to, o); }, true);
  refuses(
      on_host, [&](auto* o) { return tmap_ragged_pad(&g.source, &g.dense, nullptr, o); }, true);
  EXPECT_EQ(g.out, (std::array<float, 8>{}));
  EXPECT_EQ(g.other, (std::array<float, 64>{}));
}

}  // namespace
}  // namespace tmap::testing
