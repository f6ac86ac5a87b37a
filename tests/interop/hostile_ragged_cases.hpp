// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists every ragged operation in C, good arguments for it, and every way to break one of them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <tmap/encode_batch.hpp>

#include "interop/refuses_bad_structs.hpp"
#include "interop/sized.hpp"
#include "lib/interop/convert.hpp"

namespace tmap::testing::hostile_ragged_cases {

template <class T>
T* moved_by(T* pointer, std::uintptr_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + bytes);
}

/// Holds all arguments that a call may take: two tensors of one f32 row of 4, in host memory.
struct call_arguments {
  call_arguments() {
    for (tmap_tensor_batch* const batch : {&source, &destination, &scales}) {
      *batch = sized<tmap_tensor_batch>();
      batch->element_bytes = 4;
      batch->rank = 2;
      batch->count = 2;
      batch->arrays_on_host = 1;
      batch->tensors = sized<tmap_patch_source>();
      batch->tensors.kind = TMAP_SOURCE_COLUMNS;
      tmap_patch_columns& columns = batch->tensors.of.columns;
      columns.global_address = batch == &source ? from_addresses.data() : to_addresses.data();
      columns.global_dim[0] = batch == &source ? width.data() : to_width.data();
      columns.global_dim[1] = batch == &source ? height.data() : to_height.data();
      columns.global_stride_bytes[0] = nullptr;
    }
    scales.tensors.of.columns.global_address = scale_addresses.data();
    scales.tensors.of.columns.global_dim[0] = scales.tensors.of.columns.global_dim[1] = height.data();
    for (std::uint64_t i = 0; i < 2; ++i) {
      from_addresses[i] = reinterpret_cast<std::uint64_t>(in.data() + 4 * i);
      to_addresses[i] = reinterpret_cast<std::uint64_t>(out.data() + 4 * i);
      scale_addresses[i] = reinterpret_cast<std::uint64_t>(factors.data() + i);
    }
    dense.address = packed_address();
    dense.dim[0] = 4;
    dense.dim[1] = 1;
    packed.memory = other.data();
    packed.bytes = sizeof other;
    packed.alignment = 4;
    from.address = reinterpret_cast<std::uint64_t>(in.data());
    to.address = reinterpret_cast<std::uint64_t>(out.data());
    from.rows = to.rows = 2;
    from.row_bytes = from.pitch_bytes = to.row_bytes = to.pitch_bytes = 16;
    index.bytes = 4;
    index.rows = rows.data();
    index.count = 2;
    values.from = values.to = TMAP_VALUE_F32;
    values.scale = 1;
    quantized.from = TMAP_VALUE_F32;
    quantized.to = TMAP_VALUE_F8_E4M3;
  }
  call_arguments(const call_arguments&) = delete;
  call_arguments& operator=(const call_arguments&) = delete;

  std::uint64_t packed_address() { return reinterpret_cast<std::uint64_t>(other.data()); }
  /// Shapes the destination for `reduce_rows`, which needs one column, and for `transpose`.
  void shape_destination(std::uint64_t columns, std::uint64_t lines) {
    to_width.fill(columns);
    to_height.fill(lines);
  }

  alignas(16) std::array<float, 8> in{1, 2, 3, 4, 5, 6, 7, 8};
  alignas(16) std::array<float, 8> out{};
  alignas(16) std::array<float, 64> other{};
  std::array<float, 2> factors{};
  std::array<std::uint64_t, 2> from_addresses{}, to_addresses{}, scale_addresses{}, width{4, 4}, height{1, 1},
      to_width{4, 4}, to_height{1, 1};
  std::array<std::int32_t, 2> rows{1, 0};
  std::array<std::uint32_t, 4> words{};
  alignas(16) std::array<std::byte, 64> header{};
  std::array<tmap_address_window, 2> windows{{{0, ~std::uint64_t{0}}, {0, 0}}};

  tmap_tensor_batch source, destination, scales;
  tmap_dense_batch dense = sized<tmap_dense_batch>();
  tmap_packed_buffer packed = sized<tmap_packed_buffer>();
  tmap_row_matrix from = sized<tmap_row_matrix>(), to = sized<tmap_row_matrix>();
  tmap_row_index index = sized<tmap_row_index>();
  tmap_cast_values values = sized<tmap_cast_values>();
  tmap_quantize_values quantized = sized<tmap_quantize_values>();
  tmap_call call = sized<tmap_call>();
  std::uint32_t type = TMAP_VALUE_F32, reduction = TMAP_ROWS_SUM;
  std::array<float, 4> fill{9, 9, 9, 9};
};

/// Names the arguments that a call has.
enum part : std::uint32_t {
  source = 1,
  destination = 2,
  dense = 4,
  packed = 8,
  matrices = 16,
  index = 32,
  values = 64,
  reduction = 128,
  scales = 256,
  quantized = 512,
};

/// Returns the batch of one side, and its name.
inline tmap_tensor_batch& batch_of(call_arguments& given, std::uint32_t side) {
  return side == source ? given.source : side == destination ? given.destination : given.scales;
}
inline std::string name_of(std::uint32_t side) {
  return side == source ? "source" : side == destination ? "destination" : "scales";
}

struct c_call {
  const char* name;
  std::uint32_t parts;
  std::function<tmap_status(call_arguments&)> run;  ///< runs on the engine that the arguments' `call` names
};

inline const std::vector<c_call>& all_calls() {
  using a = call_arguments;
  static const std::vector<c_call> calls{
      {"copy", source | destination, [](a& g) { return tmap_ragged_copy(&g.source, &g.destination, &g.call); }},
      {"pack", source | packed, [](a& g) { return tmap_ragged_pack(&g.source, &g.packed, &g.call); }},
      {"unpack", packed | destination, [](a& g) { return tmap_ragged_unpack(&g.packed, &g.destination, &g.call); }},
      {"pad", source | dense, [](a& g) { return tmap_ragged_pad(&g.source, &g.dense, g.fill.data(), &g.call); }},
      {"unpad", dense | destination, [](a& g) { return tmap_ragged_unpad(&g.dense, &g.destination, &g.call); }},
      {"gather_rows", matrices | index,
       [](a& g) { return tmap_ragged_gather_rows(&g.from, &g.index, &g.to, &g.call); }},
      {"scatter_rows", matrices | index,
       [](a& g) { return tmap_ragged_scatter_rows(&g.from, &g.index, &g.to, &g.call); }},
      {"transpose", source | destination,
       [](a& g) {
         g.shape_destination(1, 4);
         return tmap_ragged_transpose(&g.source, &g.destination, &g.call);
       }},
      {"cast", source | destination | values,
       [](a& g) { return tmap_ragged_cast(&g.source, &g.destination, &g.values, &g.call); }},
      {"saxpy", source | destination, [](a& g) { return tmap_ragged_saxpy(2, &g.source, &g.destination, &g.call); }},
      {"max_pool_1d", source | destination,
       [](a& g) { return tmap_ragged_max_pool_1d(&g.source, &g.destination, 1, &g.call); }},
      {"reduce_rows", source | destination | reduction,
       [](a& g) {
         g.shape_destination(1, 1);
         return tmap_ragged_reduce_rows(&g.source, g.type, g.reduction, &g.destination, &g.call);
       }},
      {"quantize", source | destination | scales | quantized,
       [](a& g) {
         if (g.destination.element_bytes == 4) g.destination.element_bytes = 1;
         return tmap_ragged_quantize(&g.source, &g.destination, &g.scales, &g.quantized, &g.call);
       }},
      {"column_sums", source | destination,
       [](a& g) {
         return tmap_ragged_column_sums(&g.source, TMAP_VALUE_F32, &g.destination, TMAP_VALUE_F32, &g.call);
       }},
  };
  return calls;
}

inline tmap_status run_on_host(const c_call& call, call_arguments& given) {
  given.call.engine = TMAP_ON_HOST;
  return call.run(given);
}

/// Runs the call without a workspace, so that it always refuses. Rows by index need no workspace,
/// so they get nothing to do.
inline tmap_status run_on_device(const c_call& call, call_arguments& given) {
  if ((call.parts & index) != 0) given.index.count = 0;
  return call.run(given);
}

/// Breaks a call that has all of `parts`. `argument` begins with the member of `call_arguments`.
struct spoiling {
  std::string argument;
  std::uint32_t parts;
  std::function<void(call_arguments&)> spoil;
};

template <class Member>
void add_numbers(std::vector<spoiling>& all, const std::string& argument, std::uint32_t parts,
                 const std::vector<std::uint64_t>& wild, const Member& member) {
  for (const std::uint64_t value : wild) {
    all.push_back({argument, parts, [=](call_arguments& given) {
                     auto& number = member(given);
                     number = static_cast<std::decay_t<decltype(number)>>(value);
                   }});
  }
}

template <class Member>
void add_struct(std::vector<spoiling>& all, const std::string& argument, std::uint32_t parts, const Member& member) {
  call_arguments any;
  const std::uint64_t size = sizeof(member(any));
  add_numbers(all, argument + ".struct_size", parts, {0, 4, size - 1, size + 8, ~0u},
              [=](call_arguments& g) -> std::uint32_t& { return member(g).struct_size; });
  if constexpr (requires { member(any).reserved; }) {
    add_numbers(
        all, argument + ".reserved", parts, {1, ~0u}, [=](call_arguments & g) -> auto& { return member(g).reserved; });
  }
}

/// Returns the faults that C's own checks refuse, on the host or on the device.
inline std::vector<spoiling> known_to_c() {
  using a = call_arguments;
  std::vector<spoiling> all;
  for (const std::uint32_t side : {source, destination, scales}) {
    const std::string name = name_of(side);
    const auto batch = [side](a& g) -> tmap_tensor_batch& { return batch_of(g, side); };
    add_struct(all, name, side, batch);
    add_struct(all, name + ".tensors", side, [=](a& g) -> tmap_patch_source& { return batch(g).tensors; });
    add_numbers(
        all, name + ".arrays_on_host", side, {2, ~0u}, [=](a & g) -> auto& { return batch(g).arrays_on_host; });
    add_numbers(
        all, name + ".tensors.kind", side, {4, ~0u}, [=](a & g) -> auto& { return batch(g).tensors.kind; });
    const auto rows = [=](a& g) -> tmap_ragged_rows& {
      batch(g).tensors.kind = TMAP_SOURCE_ROWS;
      batch(g).tensors.of.rows = {g.packed_address(), 16, {g.words.data(), TMAP_OFFSETS_ENDS, 4, nullptr, 0}, 0, 0, 0};
      return batch(g).tensors.of.rows;
    };
    add_numbers(
        all, name + ".tensors.offsets.format", side,
        {TMAP_OFFSETS_LABELS, ~0u}, [=](a & g) -> auto& { return rows(g).offsets.format; });
    add_numbers(
        all, name + ".tensors.offsets.bytes", side,
        {0, 2, 16, ~0u}, [=](a & g) -> auto& { return rows(g).offsets.bytes; });
  }
  add_struct(all, "dense", dense, [](a& g) -> tmap_dense_batch& { return g.dense; });
  add_struct(all, "packed", packed, [](a& g) -> tmap_packed_buffer& { return g.packed; });
  add_struct(all, "from", matrices, [](a& g) -> tmap_row_matrix& { return g.from; });
  add_struct(all, "to", matrices, [](a& g) -> tmap_row_matrix& { return g.to; });
  add_struct(all, "index", index, [](a& g) -> tmap_row_index& { return g.index; });
  add_struct(all, "values", values, [](a& g) -> tmap_cast_values& { return g.values; });
  add_struct(all, "quantized", quantized, [](a& g) -> tmap_quantize_values& { return g.quantized; });
  add_numbers(
      all, "quantized.from", quantized, {0, 4, 5, 6, ~0u}, [](a & g) -> auto& { return g.quantized.from; });
  add_numbers(
      all, "quantized.to", quantized, {0, 3, 6, ~0u}, [](a & g) -> auto& { return g.quantized.to; });
  add_numbers(
      all, "quantized.block", quantized, {4, ~0u}, [](a & g) -> auto& { return g.quantized.block; });
  add_numbers(
      all, "quantized.powers_of_two", quantized, {2, ~0u}, [](a & g) -> auto& { return g.quantized.powers_of_two; });
  add_numbers(
      all, "quantized.transposed_scales", quantized, {2, ~0u},
      [](a & g) -> auto& { return g.quantized.transposed_scales; });
  add_struct(all, "call", 0, [](a& g) -> tmap_call& { return g.call; });
  add_numbers(
      all, "call.policy", 0, {4, ~0u}, [](a & g) -> auto& { return g.call.policy; });
  add_numbers(
      all, "call.allowed", 0, {16, ~0u}, [](a & g) -> auto& { return g.call.allowed; });
  add_numbers(
      all, "values.from", values, {6, ~0u}, [](a & g) -> auto& { return g.values.from; });
  add_numbers(
      all, "values.to", values, {6, ~0u}, [](a & g) -> auto& { return g.values.to; });
  add_numbers(
      all, "type", reduction, {6, ~0u}, [](a & g) -> auto& { return g.type; });
  add_numbers(
      all, "reduction", reduction, {2, ~0u}, [](a & g) -> auto& { return g.reduction; });
  return all;
}

void add_arrays(std::vector<spoiling>& all, const std::string& name, std::uint32_t side,
                const std::function<tmap_tensor_batch&(call_arguments&)>& batch) {
  using a = call_arguments;
  const auto add = [&](const std::string& member, const std::function<void(tmap_patch_source&, a&)>& spoil) {
    all.push_back({name + ".tensors." + member, side, [=](a& g) { spoil(batch(g).tensors, g); }});
  };
  add("global_address", [](auto& t, a&) { t.of.columns.global_address = nullptr; });
  add("global_address", [](auto& t, a&) { t.of.columns.global_address = moved_by(t.of.columns.global_address, 4); });
  for (const int axis : {0, 1}) {
    const std::string dims = "global_dim[" + std::to_string(axis) + "]";
    add(dims, [=](auto& t, a&) { t.of.columns.global_dim[axis] = nullptr; });
    add(dims, [=](auto& t, a&) { t.of.columns.global_dim[axis] = moved_by(t.of.columns.global_dim[axis], 4); });
  }
  add("global_stride_bytes[0]",
      [](auto& t, a& g) { t.of.columns.global_stride_bytes[0] = moved_by(g.width.data(), 4); });
  add("patches", [](auto& t, a&) {
    t.kind = TMAP_SOURCE_PATCHES;
    t.of.patches = nullptr;
  });
  add("patches", [](auto& t, a& g) {
    t.kind = TMAP_SOURCE_PATCHES;
    t.of.patches = reinterpret_cast<const tmap_map_patch*>(moved_by(g.other.data(), 8));
  });
  add("address_units", [](auto& t, a&) {
    t.kind = TMAP_SOURCE_COMPACT;
    t.of.compact = {};
  });
  add("global_stride_units[0]", [](auto& t, a& g) {
    t.kind = TMAP_SOURCE_COMPACT;
    t.of.compact = {};
    t.of.compact.address_units = t.of.compact.global_dim[0] = t.of.compact.global_dim[1] = g.words.data();
    t.of.compact.global_stride_units[0] = moved_by(g.words.data(), 2);
  });
  for (const std::uint32_t bytes : {4u, 8u}) {
    add("offsets.values", [=](auto& t, a& g) {
      t.kind = TMAP_SOURCE_ROWS;
      t.of.rows = {g.packed_address(), 16, {nullptr, TMAP_OFFSETS_ENDS, bytes, nullptr, 0}, 0, 0, 0};
    });
    add("offsets.values", [=](auto& t, a& g) {
      t.kind = TMAP_SOURCE_ROWS;
      const void* const odd = moved_by(g.other.data(), bytes / 2);
      t.of.rows = {g.packed_address(), 16, {odd, TMAP_OFFSETS_ENDS, bytes, nullptr, 0}, 0, 0, 0};
    });
  }
}

/// Returns the faults that only the operation refuses.
inline std::vector<spoiling> known_to_the_operation() {
  using a = call_arguments;
  std::vector<spoiling> all;
  const std::vector<std::uint64_t> counts{max_batch + 1, std::uint64_t{1} << 32, ~std::uint64_t{0}};
  for (const std::uint32_t side : {source, destination, scales}) {
    const std::string name = name_of(side);
    const auto batch = [side](a& g) -> tmap_tensor_batch& { return batch_of(g, side); };
    add_numbers(
        all, name + ".element_bytes", side, {0, 17, 256, ~0u}, [=](a & g) -> auto& { return batch(g).element_bytes; });
    add_numbers(
        all, name + ".rank", side, {0, 6, 256, ~0u}, [=](a & g) -> auto& { return batch(g).rank; });
    add_numbers(
        all, name + ".count", side, counts, [=](a & g) -> auto& { return batch(g).count; });
    add_arrays(all, name, side, batch);
  }
  const auto add = [&](const char* argument, std::uint32_t parts, const std::function<void(a&)>& spoil) {
    all.push_back({argument, parts, spoil});
  };
  add("call.windows", 0, [](a& g) { g.call.window_count = 1; });
  add("call.windows", 0, [](a& g) {
    g.call.window_count = 1;
    g.call.windows = moved_by(g.windows.data(), 4);
  });
  add("call.statuses", 0, [](a& g) { g.call.statuses = moved_by(g.words.data(), 2); });
  add("call.header", 0, [](a& g) { g.call.header = reinterpret_cast<tmap_batch_header*>(g.header.data() + 8); });
  add("dense.address", dense, [](a& g) { g.dense.address = 0; });
  add("dense.address", dense, [](a& g) { g.dense.address += 2; });
  add("dense.dim[1]", dense, [](a& g) { g.dense.dim[1] = ~std::uint64_t{0}; });
  add("dense.stride_bytes[0]", dense, [](a& g) {
    g.dense.dim[1] = 2;
    g.dense.stride_bytes[0] = 18;
  });
  add("dense.tensor_pitch_bytes", dense, [](a& g) { g.dense.tensor_pitch_bytes = 18; });
  add("dense.tensor_pitch_bytes", source | dense, [](a& g) { g.dense.tensor_pitch_bytes = 12; });
  add("packed.memory", packed, [](a& g) { g.packed.memory = nullptr; });
  add("packed.memory", packed, [](a& g) { g.packed.memory = moved_by(g.other.data(), 2); });
  add("packed.begins", packed, [](a& g) { g.packed.begins = reinterpret_cast<std::int64_t*>(g.words.data() + 1); });
  add_numbers(
      all, "packed.alignment", packed, {3, std::uint64_t{1} << 21, ~std::uint64_t{0}},
      [](a & g) -> auto& { return g.packed.alignment; });
  add("from.address", matrices, [](a& g) { g.from.address = 0; });
  add("to.address", matrices, [](a& g) { g.to.address = 0; });
  add("to.pitch_bytes", matrices, [](a& g) { g.to.pitch_bytes = 15; });
  add("to.row_bytes", matrices, [](a& g) { g.from.row_bytes = 12; });
  add_numbers(
      all, "index.bytes", index, {0, 1, 2, 16, ~0u}, [](a & g) -> auto& { return g.index.bytes; });
  add_numbers(
      all, "walked.rows", index, {3, std::uint64_t{1} << 32, ~std::uint64_t{0}},
      [](a & g) -> auto& { return g.index.count; });
  add("index.rows", index, [](a& g) { g.index.rows = nullptr; });
  add("index.rows", index, [](a& g) { g.index.rows = moved_by(g.rows.data(), 2); });
  add("values.scales", values, [](a& g) { g.values.scales = moved_by(g.fill.data(), 2); });
  add("values.shifts", values, [](a& g) { g.values.shifts = moved_by(g.fill.data(), 2); });
  return all;
}

}  // namespace tmap::testing::hostile_ragged_cases
