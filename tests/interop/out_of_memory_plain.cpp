// SPDX-License-Identifier: Apache-2.0
// Tests the calls of C++ that use neither a service nor memory of tensors.
#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/log.hpp>
#include <tmap/map_fields.hpp>
#include <tmap/moe.hpp>
#include <tmap/moe_layer.hpp>
#include <tmap/simulator.hpp>
#include <tmap/validate.hpp>

#include <array>
#include <utility>

#include "interop/no_stream.hpp"
#include "interop/out_of_memory.hpp"
#include "lib/support/log.hpp"
#include "service/rows_spec.hpp"

namespace tmap::testing {
namespace {

/// Returns a spec that breaks several rules.
tensor_spec broken_spec() {
  tensor_spec spec = rows_spec();
  spec.global_address = 8;
  spec.box_dim[0] = 300;
  spec.global_stride_bytes[0] = 17;
  return spec;
}

im2col_spec pictures() {
  im2col_spec spec{.tensor = rows_spec(), .channels_per_pixel = 32, .pixels_per_column = 8};
  spec.tensor.rank = 3;
  spec.tensor.global_dim[2] = 4;
  spec.tensor.global_stride_bytes[1] = 256;
  return spec;
}

im2col_wide_spec wide_pictures() {
  im2col_wide_spec spec{.tensor = pictures().tensor, .channels_per_pixel = 32, .pixels_per_column = 8};
  spec.tensor.swizzle = swizzle::bytes_128;
  return spec;
}

tensor_map no_map() {
  tensor_map map = encode_bits(rows_spec()).value();
  map.words[1] |= 3u << 11;
  map.words[12] = 0xff00;
  return map;
}

tensor_map other_map() {
  tensor_spec other = rows_spec();
  other.global_dim[1] = 77;
  other.type = element_type::u32;
  return encode_bits(other).value();
}

/// Encodes into slots of a device.
result<void> encode_from(const tensor_source& source, patch_fields fields = patch_address) {
  return encode_batch(*make_zeroed_template(rows_spec(), fields), source, somewhere<tensor_map>(), 1, {no_stream});
}

ragged_rows rows(std::uint32_t offset_bytes) {
  return {1 << 20, 256, {somewhere<std::int64_t>(), offset_format::ends, offset_bytes}};
}

template <class Problem>
result<void> multiply(Problem problem) {
  problem.groups = 10;
  if constexpr (requires { problem.columns; }) {
    problem.columns = problem.m = problem.k = 64;
    problem.offsets.values = somewhere<void>();
    problem.a = problem.b = problem.c = {0x10000, 128};
    problem.a_group_pitch_bytes = 64 * 128;
  } else if constexpr (requires { problem.offsets; }) {
    problem.rows = 100;
    problem.offsets.values = somewhere<void>();
    problem.n = 64;
    problem.a = problem.b = problem.c = {0x10000, 128};
    if constexpr (requires { problem.k; }) {
      problem.k = 64;
      problem.b_group_pitch_bytes = 64 * 128;
    } else {
      problem.m = 64;
      problem.c_group_pitch_bytes = 64 * 128;
    }
  } else {
    problem.a = problem.b = problem.c = somewhere<std::uint64_t>();
    problem.a_pitch_bytes = problem.b_pitch_bytes = problem.c_pitch_bytes = somewhere<std::int64_t>();
    problem.m = problem.n = problem.k = somewhere<std::int64_t>();
  }
  return gemm::multiply(problem, {{no_stream, {somewhere<void>(), 1 << 20}}});
}

moe::route_problem routed(bool are_given) {
  moe::route_problem made{.tokens = 20'000, .experts = 64, .k = 4, .choices = moe::given_choices{somewhere<void>()}};
  if (!are_given) made.choices = moe::logits{.values = {0x10000, 256}};
  return made;
}

result<void> route(bool are_given) {
  return moe::route(routed(are_given), {}, {.where = {no_stream, {somewhere<void>(), 1 << 20}}});
}

moe::layer_problem layer_of_experts() {
  return {.routing = routed(true),
          .width = 64,
          .inner = 32,
          .x = {0x10000, 128},
          .gate_up = {.values = {0x10000, 128}, .group_pitch_bytes = 64 * 128},
          .down = {.values = {0x10000, 64}, .group_pitch_bytes = 64 * 64},
          .out = {0x10000, 128}};
}

result<void> run_layer() {
  return moe::layer(layer_of_experts(), {}, {.where = {no_stream, {somewhere<void>(), 1 << 28}}});
}

result<void> combine() {
  return moe::combine({.tokens = 10,
                       .k = 2,
                       .columns = 8,
                       .row_type = moe::float_type::bf16,
                       .rows = 20,
                       .values = {0x10000, 16},
                       .row_of_choice = somewhere<std::int32_t>(),
                       .out = {0x20000, 16}},
                      {.where = {no_stream}});
}

result<void> combine_backward() {
  return moe::combine_backward({.tokens = 10,
                                .k = 2,
                                .columns = 8,
                                .row_type = moe::float_type::bf16,
                                .rows = 20,
                                .row_of_choice = somewhere<std::int32_t>(),
                                .d_out = {0x10000, 16},
                                .d_values = {0x20000, 16}},
                               {.where = {no_stream}});
}

/// Holds a tensor and a tile of the simulator.
struct simulated {
  static constexpr bool may_do_a_part = true;

  std::string state() const {
    std::string text;
    for (const std::uint32_t each : memory) text += std::to_string(each) + ' ';
    for (const std::uint32_t each : tile) text += std::to_string(each) + ' ';
    return text;
  }
  std::string work() { return text_of(engine.load(map, corner, room)) + state(); }

  std::array<std::uint32_t, 64 * 4> memory = filled<64 * 4>(1);
  alignas(128) std::array<std::uint32_t, 32 * 8> tile = filled<32 * 8>(1000);
  simulator::memory_window window{1 << 20, {reinterpret_cast<std::byte*>(memory.data()), sizeof memory}};
  simulator::copy_engine engine{{&window, 1}};
  tensor_map map = [] {
    tensor_spec spec = rows_spec();
    spec.global_address = 1 << 20;
    spec.global_dim[1] = 4;
    spec.type = element_type::u32;
    return encode_bits(spec).value();
  }();
  std::array<std::int32_t, 2> place{32, 1};
  cuda::std::span<const std::int32_t> corner{place.data(), 2};
  cuda::std::span<std::byte> room{reinterpret_cast<std::byte*>(tile.data()), sizeof tile};

 private:
  template <std::size_t Count>
  static std::array<std::uint32_t, Count> filled(std::uint32_t first) {
    std::array<std::uint32_t, Count> values;
    for (std::size_t i = 0; i < Count; ++i) values[i] = first + static_cast<std::uint32_t>(i);
    return values;
  }
};

/// Holds counts of the log's lines, which its callback receives.
struct two_logs {
  static constexpr bool may_do_a_part = false;
  two_logs() { set_log_callback(&count, &lines[0]); }
  ~two_logs() { set_log_callback(nullptr, nullptr); }
  static void count(log_level, const char*, void* lines) { ++*static_cast<int*>(lines); }
  std::string state() {
    support::log(log_level::error, "a line");
    return std::to_string(lines[0]) + ' ' + std::to_string(std::exchange(lines[1], 0));
  }
  std::string work() { return state(); }
  int lines[2]{};
};

constexpr bad_item some_bad_item{batch_call::ragged_copy, 17, 3, 2};

}  // namespace

std::vector<public_call> plain_calls() {
  const tensor_map map = encode_bits(rows_spec()).value();
  const error failed = encode_bits(broken_spec()).error();
  return {
      plain("tmap::info",
            [] { return std::uint64_t{info(rule::t06_address_multiple_of_16).level == severity::error}; }),
      {"tmap::name",
       [] {
         plain("a status", [] { return name(status::out_of_memory); }).check();
         plain("a call", [] { return name(batch_call::ragged_copy); }).check();
       },
       2},
      {"tmap::to_string",
       [=] {
         plain("error", [=] { return to_string(failed); }).check();
         plain("violations", [] { return to_string(validate(broken_spec())); }).check();
         plain("violation", [] { return to_string(*validate(broken_spec()).begin()); }).check();
         plain("report", [] { return to_string(fault_report{1, 2, 3, 4, some_bad_item}); }).check();
         plain("bad item", [] { return to_string(some_bad_item); }).check();
         plain("status of a map", [] { return to_string(map_status{7}); }).check();
       },
       6},
      plain("tmap::ragged::to_string", [] { return ragged::to_string(ragged::tensor_status{7}); }),
      plain("tmap::gemm::to_string", [] { return gemm::to_string(gemm::group_status{7}); }),
      plain("tmap::faults", [] { return faults(); }),
      plain("tmap::reset_faults", [] { return reset_faults(); }),
      plain("tmap::check_from_environment", [] { return check_from_environment(); }),
      {"tmap::encode_bits",
       [] {
         plain("tiled", [] { return encode_bits(rows_spec()); }).check();
         plain("im2col", [] { return encode_bits(pictures()); }).check();
       },
       2},
      plain("tmap::decode", [=] { return decode(map); }),
      {"tmap::describe",
       [=] {
         plain("a map", [=] { return describe(map); }).check();
         plain("no map", [] { return describe(no_map()); }).check();
       }},
      {"tmap::describe_json",
       [=] {
         plain("a map", [=] { return describe_json(map); }).check();
         plain("no map", [] { return describe_json(no_map()); }).check();
       }},
      plain("tmap::remedy",
            [] {
              return remedy(violation{rule::t13_stride_multiple_of_16, 0, 8200, 16}, element_type::f16);
            }),
      plain("tmap::diff", [=] { return diff(map, other_map()); }),
      plain("tmap::fields_of", [=] { return fields_of(map); }),
      plain("tmap::to_json", [] { return to_json(service_statistics{}); }),
      plain("tmap::policy_from_environment", [] { return policy_from_environment(); }),
      {"tmap::encode",
       [] {
         plain("tiled", [] { return encode(rows_spec()); }).check();
         plain("im2col", [] { return encode(pictures()); }).check();
         plain("im2col wide", [] { return encode(wide_pictures()); }).check();
       },
       3},
      plain("tmap::replace_address", [=] { return replace_address(map, 1 << 20); }),
      plain("tmap::query_device_limits", [] { return query_device_limits(); }),
      plain("tmap::query_environment", [] { return query_environment(); }),
      plain("tmap::make_template", [] { return make_template(rows_spec(), patch_address); }),
      plain("tmap::make_zeroed_template", [] { return make_zeroed_template(rows_spec(), patch_address); }),
      {"tmap::encode_batch",
       [] {
         plain("array", [] { return encode_from(patch_array{somewhere<map_patch>()}); }).check();
         plain("columns", [] { return encode_from(patch_columns{somewhere<std::uint64_t>(), {}, {}}); }).check();
         plain("compact", [] { return encode_from(compact_columns{0, somewhere<std::uint32_t>(), {}, {}}); }).check();
         plain("rows", [] { return encode_from(rows(4), patch_address | patch_dim(1)); }).check();
         plain("rows", [] { return encode_from(rows(8), patch_address | patch_dim(1)); }).check();
       }},
      plain("tmap::ragged_workspace_bytes", [] { return ragged_workspace_bytes(10, 4); }),
      plain("tmap::gemm::workspace_bytes", [] { return gemm::workspace_bytes(10); }),
      plain("tmap::gemm::plan_count", [] { return std::uint64_t{gemm::plan_count()}; }),
      plain("tmap::gemm::plan_name", [] { return gemm::plan_name(0); }),
      {"tmap::gemm::multiply",
       [] {
         plain("rows", [] { return multiply(gemm::row_problem{}); }).check();
         plain("columns", [] { return multiply(gemm::column_problem{}); }).check();
         plain("weights", [] { return multiply(gemm::weight_problem{}); }).check();
         plain("pointers", [] { return multiply(gemm::pointer_problem{}); }).check();
       },
       4},
      plain("tmap::moe::to_string", [] { return moe::to_string(moe::choice_status{7}); }),
      plain("tmap::moe::workspace_bytes", [] { return moe::workspace_bytes(routed(true)); }),
      plain("tmap::moe::workspace_bytes", [] { return moe::workspace_bytes(layer_of_experts()); }),
      {"tmap::moe::route",
       [] {
         plain("logits", [] { return route(false); }).check();
         plain("given", [] { return route(true); }).check();
       }},
      plain("tmap::moe::layer", [] { return run_layer(); }),
      plain("tmap::moe::combine", [] { return combine(); }),
      plain("tmap::moe::combine_backward", [] { return combine_backward(); }),
      plain("tmap::simulator::fidelity_table", [] { return std::uint64_t{simulator::fidelity_table().size()}; }),
      in<simulated>("tmap::simulator::copy_engine::load",
                    [](simulated& s) { return s.engine.load(s.map, s.corner, s.room); }),
      in<simulated>("tmap::simulator::copy_engine::store",
                    [](simulated& s) { return s.engine.store(s.map, s.corner, s.room); }),
      in<simulated>("tmap::simulator::copy_engine::reduce",
                    [](simulated& s) { return s.engine.reduce(reduction::max, s.map, s.corner, s.room); }),
      in<two_logs>("tmap::set_log_callback",
                   [](two_logs& logs) {
                     set_log_callback(&two_logs::count, &logs.lines[1]);
                     return done{};
                   }),
  };
}

}  // namespace tmap::testing
