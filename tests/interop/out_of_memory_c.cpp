// SPDX-License-Identifier: Apache-2.0
// Tests the calls of C that use neither services nor tensors' memory.
#include <tmap/tmap.h>
#include <tmap/encode.hpp>

#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "interop/out_of_memory.hpp"
#include "interop/sized.hpp"
#include "interop/xla_scene.hpp"
#include "lib/support/log.hpp"

namespace tmap::testing {
namespace {

/// Holds what calls read and write. Every output is poisoned and shown by the state.
struct in_and_out {
  static constexpr bool may_do_a_part = false;

  in_and_out() {
    const std::uint64_t dims[] = {64, 8};
    const std::uint32_t box[] = {32, 8};
    EXPECT_EQ(tmap_packed_spec(TMAP_F32, 4096, 2, dims, box, &spec), TMAP_OK);
    EXPECT_EQ(tmap_encode_bits(&spec, &map), TMAP_OK);
    broken = spec;
    broken.global_address = 8;
    broken.box_dim[0] = 300;
    pictures.tensor = spec;
    pictures.tensor.rank = 3;
    pictures.tensor.global_dim[2] = 4;
    pictures.tensor.global_stride_bytes[1] = 2048;
    pictures.channels_per_pixel = 32;
    pictures.pixels_per_column = 8;
    broken_pictures = pictures;
    broken_pictures.tensor.global_address = 8;
    no_map = map;
    no_map.words[12] = 0xff00;
    EXPECT_EQ(tmap_encode_bits(&broken, &out.map), TMAP_RULE_BROKEN);  // sets the text of `tmap_last_message`
    std::memset(&out, 0x5a, sizeof out);
    out.limits = sized<tmap_device_limits>();
    out.decoded = sized<tmap_decoded_map>();
    out.last = sized<tmap_error>();
    out.report = sized<tmap_fault_report>();
    out.made_spec = sized<tmap_tensor_spec>();
  }
  in_and_out(const in_and_out&) = delete;
  in_and_out& operator=(const in_and_out&) = delete;
  ~in_and_out() {
    if (base.value != 9) tmap_template_destroy(base);
  }
  std::string state() const {
    std::string bytes(sizeof out, ' ');
    std::memcpy(bytes.data(), &out, sizeof out);
    for (char& each : bytes) each = static_cast<char>('a' + (each & 15));
    return bytes + (base.value == 9 ? " no template" : " a template");
  }
  std::string work() const { return {}; }

  tmap_tensor_spec spec{};
  tmap_tensor_spec broken{};
  tmap_im2col_spec pictures = sized<tmap_im2col_spec>();
  tmap_im2col_spec broken_pictures{};
  tmap_tensor_map map{};
  tmap_tensor_map no_map{};
  struct outputs {
    char text[8192];
    std::size_t length;
    tmap_tensor_map map;
    tmap_decoded_map decoded;
    tmap_device_limits limits;
    tmap_tensor_spec made_spec;
    tmap_error last;
    tmap_fault_report report;
    tmap_violation violations[8];
    std::uint64_t number;
    std::uint64_t second_number;
    std::uint32_t count;
  } out;
  tmap_template base{9};
};

/// Adds a template to destroy.
struct with_template : in_and_out {
  with_template() { EXPECT_EQ(tmap_template_create_zeroed(&spec, 1, &base), TMAP_OK); }
};

constexpr tmap_fault_report some_report{sizeof(tmap_fault_report), 0, 1, 2, 3, 4, {4, 0, 17, 3, 2}};

/// Explains a spec that breaks rules, also after a call that failed for lack of memory.
tmap_status explain(in_and_out& s) {
  return tmap_explain(&s.broken, nullptr, s.out.text, sizeof s.out.text, &s.out.length);
}

tmap_status multiply_rows() {
  tmap_row_problem problem = sized<tmap_row_problem>();
  problem.groups = 10;
  problem.rows = 100;
  problem.n = problem.k = 64;
  problem.offsets = {somewhere<void>(), TMAP_OFFSETS_PREFIX, 8, nullptr, 0};
  problem.a = problem.b = problem.c = {0x10000, 128};
  problem.b_group_pitch_bytes = 64 * 128;
  const tmap_call call = call_in(somewhere<void>(), 1 << 20);
  return tmap_gemm_rows(&problem, &call);
}

tmap_status multiply_weights() {
  tmap_weight_problem problem = sized<tmap_weight_problem>();
  problem.groups = 10;
  problem.rows = 100;
  problem.m = problem.n = 64;
  problem.a_layout = TMAP_A_K_BY_M;
  problem.b_layout = TMAP_B_K_BY_N;
  problem.offsets = {somewhere<void>(), TMAP_OFFSETS_PREFIX, 8, nullptr, 0};
  problem.a = problem.b = problem.c = {0x10000, 128};
  problem.c_group_pitch_bytes = 64 * 128;
  const tmap_call call = call_in(somewhere<void>(), 1 << 20);
  return tmap_gemm_weights(&problem, &call);
}

tmap_status multiply_columns() {
  tmap_column_problem problem = sized<tmap_column_problem>();
  problem.groups = 10;
  problem.columns = 64;
  problem.m = problem.k = 64;
  problem.offsets = {somewhere<void>(), TMAP_OFFSETS_PREFIX, 8, nullptr, 0};
  problem.a = problem.b = problem.c = {0x10000, 128};
  problem.a_group_pitch_bytes = 64 * 128;
  const tmap_call call = call_in(somewhere<void>(), 1 << 20);
  return tmap_gemm_columns(&problem, &call);
}

tmap_status multiply_pointers() {
  tmap_pointer_problem problem = sized<tmap_pointer_problem>();
  problem.groups = 10;
  problem.a = problem.b = problem.c = somewhere<std::uint64_t>();
  problem.a_pitch_bytes = problem.b_pitch_bytes = problem.c_pitch_bytes = somewhere<std::int64_t>();
  problem.m = problem.n = problem.k = somewhere<std::int64_t>();
  const tmap_call call = call_in(somewhere<void>(), 1 << 20);
  return tmap_gemm_pointers(&problem, &call);
}

/// Returns the status of a handler's call: the thread's last error, which handlers report.
tmap_status status_of(const void* failed) {
  if (failed == nullptr) return TMAP_OK;
  tmap_error last = sized<tmap_error>();
  tmap_last_error(&last);
  return last.code;
}

/// Calls a handler. The scene is made here, because the call's own allocations fail.
auto call_of_xla(void* (*handler)(void*), const xla_scene& of) {
  return [handler, scene = std::make_shared<xla_scene>(of)] { return status_of(handler(&scene->frame)); };
}

tmap_route_problem routed_in_c() {
  tmap_route_problem problem = sized<tmap_route_problem>();
  problem.tokens = 20'000;
  problem.experts = 64;
  problem.k = 4;
  problem.choices.values = {0x10000, 256};
  return problem;
}

tmap_status route_in_c() {
  const tmap_route_problem problem = routed_in_c();
  const tmap_call call = call_in(somewhere<void>(), 1 << 20);
  return tmap_moe_route(&problem, nullptr, &call);
}

tmap_status combine_in_c() {
  tmap_combine_problem problem = sized<tmap_combine_problem>();
  problem.tokens = 10;
  problem.k = 2;
  problem.columns = 8;
  problem.rows = 20;
  problem.values = {0x10000, 32};
  problem.row_of_choice = somewhere<std::int32_t>();
  problem.out = {0x20000, 32};
  return tmap_moe_combine(&problem, nullptr);
}

tmap_layer_problem layer_in_c() {
  tmap_layer_problem problem = sized<tmap_layer_problem>();
  problem.routing = routed_in_c();
  problem.width = 64;
  problem.inner = 32;
  problem.x = problem.out = {0x10000, 128};
  problem.gate_up.values = {0x10000, 128};
  problem.gate_up.group_pitch_bytes = 64 * 128;
  problem.gate.function = TMAP_GATE_SILU;
  problem.down.values = {0x10000, 64};
  problem.down.group_pitch_bytes = 64 * 64;
  return problem;
}

tmap_status run_layer_in_c() {
  const tmap_layer_problem problem = layer_in_c();
  const tmap_call call = call_in(somewhere<void>(), 1 << 28);
  return tmap_moe_layer(&problem, nullptr, &call);
}

tmap_status combine_backward_in_c() {
  tmap_combine_gradients problem = sized<tmap_combine_gradients>();
  problem.tokens = 10;
  problem.k = 2;
  problem.columns = 8;
  problem.rows = 20;
  problem.row_of_choice = somewhere<std::int32_t>();
  problem.d_out = {0x10000, 32};
  problem.d_values = {0x20000, 32};
  return tmap_moe_combine_backward(&problem, nullptr);
}

tmap_status encode_into_slots(with_template& s) {
  tmap_patch_source source = sized<tmap_patch_source>();
  source.kind = TMAP_SOURCE_PATCHES;
  source.of.patches = somewhere<tmap_map_patch>();
  return tmap_encode_batch(s.base, &source, somewhere<tmap_tensor_map>(), 3, nullptr);
}

/// Holds a tile of the simulator, whose calls may do a part of their work.
struct c_simulated : in_and_out {
  static constexpr bool may_do_a_part = true;
  c_simulated() {
    spec.global_address = 1 << 20;
    EXPECT_EQ(tmap_encode_bits(&spec, &map), TMAP_OK);
    tile.rank = 2;
    tile.data = bytes.data();
    tile.bytes = sizeof bytes;
  }
  alignas(128) std::array<float, 64 * 8> memory{};
  alignas(128) std::array<float, 32 * 8> bytes{};
  tmap_memory_window window{1 << 20, memory.data(), sizeof memory};
  tmap_tile tile = sized<tmap_tile>();
};

/// Holds counts of the log's lines, which its callback receives.
struct two_c_logs {
  static constexpr bool may_do_a_part = false;
  two_c_logs() { EXPECT_EQ(tmap_set_log_callback(&count, &lines[0]), TMAP_OK); }
  ~two_c_logs() { EXPECT_EQ(tmap_set_log_callback(nullptr, nullptr), TMAP_OK); }
  static void count(tmap_log_level, const char*, void* lines) { ++*static_cast<int*>(lines); }
  std::string state() {
    support::log(log_level::error, "a line");
    return std::to_string(std::exchange(lines[0], 0)) + ' ' + std::to_string(std::exchange(lines[1], 0));
  }
  std::string work() { return state(); }
  int lines[2]{};
};

/// Checks calls that return one text.
template <class Call>
public_call text_call(const char* name, const Call& call) {
  return in<in_and_out>(name, [call](in_and_out& s) { return call(s, s.out.text, sizeof s.out.text, &s.out.length); });
}

std::vector<public_call> calls_without_a_gpu() {
  using s = in_and_out;
  return {
      plain("tmap_version", [] { return std::uint64_t{tmap_version()}; }),
      plain("tmap_status_name", [] { return tmap_status_name(TMAP_OUT_OF_MEMORY); }),
      plain("tmap_call_name", [] { return tmap_call_name(3); }),
      text_call("tmap_item_text", [](s&, auto... text) { return tmap_item_text(TMAP_ITEM_TENSOR, 7, text...); }),
      text_call("tmap_fault_report_text",
                [](s&, auto... text) { return tmap_fault_report_text(&some_report, text...); }),
      in<s>("tmap_faults", [](s& o) { return tmap_faults(&o.out.report); }),
      in<s>("tmap_reset_faults", [](s& o) { return tmap_reset_faults(&o.out.report); }),
      plain("tmap_rule_count", [] { return std::uint64_t{tmap_rule_count()}; }),
      plain("tmap_rule_name", [] { return tmap_rule_name(3); }),
      plain("tmap_rule_sentence", [] { return tmap_rule_sentence(3); }),
      in<s>("tmap_last_error", [](s& o) { return tmap_last_error(&o.out.last); }),
      text_call("tmap_last_message", [](s&, auto... text) { return tmap_last_message(text...); }),
      in<two_c_logs>("tmap_set_log_callback",
                     [](two_c_logs& logs) { return tmap_set_log_callback(&two_c_logs::count, &logs.lines[1]); }),
      in<s>("tmap_packed_spec",
            [](s& o) {
              const std::uint64_t dims[] = {64, 8};
              const std::uint32_t box[] = {32, 8};
              return tmap_packed_spec(TMAP_F32, 4096, 2, dims, box, &o.out.made_spec);
            }),
      in<s>("tmap_validate", [](s& o) { return tmap_validate(&o.broken, nullptr, o.out.violations, 8, &o.out.count); }),
      in<s>("tmap_validate_im2col",
            [](s& o) { return tmap_validate_im2col(&o.broken_pictures, nullptr, o.out.violations, 8, &o.out.count); }),
      in<s>("tmap_explain", &explain),
      text_call("tmap_explain_im2col",
                [](s& o, auto... text) { return tmap_explain_im2col(&o.broken_pictures, nullptr, text...); }),
      in<s>("tmap_encode_bits", [](s& o) { return tmap_encode_bits(&o.spec, &o.out.map); }),
      in<s>("tmap_decode", [](s& o) { return tmap_decode(&o.map, &o.out.decoded); }),
      text_call("tmap_describe", [](s& o, auto... text) { return tmap_describe(&o.no_map, text...); }),
      text_call("tmap_describe_json", [](s& o, auto... text) { return tmap_describe_json(&o.no_map, text...); }),
      in<s>("tmap_tile_sizes", [](s& o) { return tmap_tile_sizes(&o.spec, &o.out.number, &o.out.second_number); }),
      in<c_simulated>("tmap_simulate_load",
                      [](c_simulated& o) { return tmap_simulate_load(&o.map, &o.window, 1, &o.tile, &o.out.number); }),
      in<c_simulated>("tmap_simulate_store",
                      [](c_simulated& o) { return tmap_simulate_store(&o.map, &o.window, 1, &o.tile); }),
      in<c_simulated>(
          "tmap_simulate_reduce",
          [](c_simulated& o) { return tmap_simulate_reduce(TMAP_REDUCE_MAX, &o.map, &o.window, 1, &o.tile); }),
      in<s>("tmap_rows_workspace_bytes", [](s& o) { return tmap_rows_workspace_bytes(10, 4, &o.out.number); }),
      in<s>("tmap_gemm_workspace_bytes", [](s& o) { return tmap_gemm_workspace_bytes(10, &o.out.number); }),
      plain("tmap_gemm_plan_count", [] { return std::uint64_t{tmap_gemm_plan_count()}; }),
      plain("tmap_gemm_plan_name", [] { return tmap_gemm_plan_name(0); }),
      plain("tmap_moe_most_rows", [] { return tmap_moe_most_rows(10, 4, 2, 16); }),
      in<s>("tmap_moe_workspace_bytes",
            [](s& o) {
              const tmap_route_problem problem = routed_in_c();
              return tmap_moe_workspace_bytes(&problem, &o.out.number);
            }),
      in<s>("tmap_moe_layer_workspace_bytes",
            [](s& o) {
              const tmap_layer_problem problem = layer_in_c();
              return tmap_moe_layer_workspace_bytes(&problem, &o.out.number);
            }),
      in<s>("tmap_template_create_zeroed", [](s& o) { return tmap_template_create_zeroed(&o.spec, 1, &o.base); }),
      in<with_template>("tmap_template_destroy",
                        [](with_template& o) { return tmap_template_destroy(std::exchange(o.base, {9})); }),
  };
}

std::vector<public_call> calls_that_ask_for_a_gpu() {
  using s = in_and_out;
  return {
      in<s>("tmap_encode", [](s& o) { return tmap_encode(&o.spec, &o.out.map); }),
      in<s>("tmap_encode_im2col", [](s& o) { return tmap_encode_im2col(&o.pictures, &o.out.map); }),
      in<s>("tmap_replace_address", [](s& o) { return tmap_replace_address(&o.map, 1 << 20, &o.out.map); }),
      in<s>("tmap_query_device_limits", [](s& o) { return tmap_query_device_limits(&o.out.limits); }),
      in<s>("tmap_template_create", [](s& o) { return tmap_template_create(&o.spec, 1, &o.base); }),
      in<with_template>("tmap_encode_batch", &encode_into_slots),
      plain("tmap_gemm_rows", &multiply_rows),
      plain("tmap_gemm_columns", &multiply_columns),
      plain("tmap_gemm_weights", &multiply_weights),
      plain("tmap_gemm_pointers", &multiply_pointers),
      plain("tmap_xla_rows", call_of_xla(&tmap_xla_rows, xla_rows_scene(somewhere<void>()))),
      plain("tmap_xla_weights", call_of_xla(&tmap_xla_weights, xla_weights_scene(somewhere<void>()))),
      plain("tmap_xla_pad_rows", call_of_xla(&tmap_xla_pad_rows, xla_padding_scene(somewhere<void>(), true))),
      plain("tmap_xla_unpad_rows", call_of_xla(&tmap_xla_unpad_rows, xla_padding_scene(somewhere<void>(), false))),
      plain("tmap_moe_route", &route_in_c),
      plain("tmap_moe_combine", &combine_in_c),
      plain("tmap_moe_layer", &run_layer_in_c),
      plain("tmap_moe_combine_backward", &combine_backward_in_c),
  };
}

}  // namespace

std::vector<public_call> plain_calls_of_c() {
  std::vector<public_call> all = calls_without_a_gpu();
  const std::vector<public_call> others = calls_that_ask_for_a_gpu();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace tmap::testing
