// SPDX-License-Identifier: Apache-2.0
// Tests the ragged operations of C++ and C on host memory, and on a device's as far as possible
// without one.
#include <tmap/encode.hpp>
#include <tmap/ragged.hpp>

#include <array>

#include "interop/no_stream.hpp"
#include "interop/out_of_memory.hpp"
#include "interop/sized.hpp"
#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t tensor_count = 3;
constexpr std::uint64_t row_width = 64;  // floats in a row; a map may have such rows, so the copy engine has its turn
constexpr std::uint64_t row_count = 8;
constexpr std::uint64_t value_count = tensor_count * row_width * row_count;

/// Holds equal tensors, one after the other, in memory that begins at `first`.
struct side {
  explicit side(float* memory, std::uint64_t row = row_width, std::uint64_t rows = row_count) {
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
      address[i] = reinterpret_cast<std::uint64_t>(memory + i * row * row_count);
      dim[0][i] = row;
      dim[1][i] = rows;
    }
    batch.element_bytes = 4;
    batch.rank = 2;
    batch.count = tensor_count;
    batch.arrays_on_host = 1;
    batch.tensors = sized<tmap_patch_source>();
    batch.tensors.kind = TMAP_SOURCE_COLUMNS;
    batch.tensors.of.columns = {address.data(), {dim[0].data(), dim[1].data()}, {}};
  }
  side(const side&) = delete;
  side& operator=(const side&) = delete;
  tensor_batch as_cpp() const { return interop::library_of(batch); }
  void turn() { std::swap(batch.tensors.of.columns.global_dim[0], batch.tensors.of.columns.global_dim[1]); }

  std::array<std::uint64_t, tensor_count> address;
  std::array<std::uint64_t, tensor_count> dim[2];
  tmap_tensor_batch batch = sized<tmap_tensor_batch>();
};

/// Holds both sides of an operation, in every form that an operation takes. Operations on the host
/// may have done a part of their work.
struct operands {
  static constexpr bool may_do_a_part = true;

  operands() {
    for (std::uint64_t i = 0; i < value_count; ++i) {
      in[i] = static_cast<float>(i % 100);
      out[i] = -1;
    }
    turned.turn();
    dense.address = reinterpret_cast<std::uint64_t>(out.data());
    dense.dim[0] = row_width;
    dense.dim[1] = row_count;
    packed.memory = out.data();
    packed.bytes = sizeof out;
    packed.alignment = 16;
    index.bytes = 4;
    index.rows = rows.data();
    index.count = rows.size();
    cast.from = cast.to = TMAP_VALUE_F32;
    cast.scale = 2;
    quantize.from = TMAP_VALUE_F32;
    quantize.to = TMAP_VALUE_F8_E4M3;
    narrow.batch.element_bytes = 1;
    call.statuses = statuses.data();
    call.header = &header;
  }
  std::string state() const {
    std::string bytes{reinterpret_cast<const char*>(in.data()), sizeof in};
    bytes.append(reinterpret_cast<const char*>(out.data()), sizeof out);
    bytes.append(reinterpret_cast<const char*>(scales.data()), sizeof scales);
    bytes.append(reinterpret_cast<const char*>(statuses.data()), sizeof statuses);
    return bytes + std::to_string(header.bad_count);
  }
  std::string work() { return text_of(ragged::copy(from.as_cpp(), to.as_cpp(), here())) + state(); }

  ragged::run here() const { return interop::ragged_call{&call}.value(); }
  static ragged::run on_a_stream() { return {on_stream{no_stream, scratch()}}; }
  ragged::row_matrix matrix(const std::array<float, value_count>& memory) const {
    return {reinterpret_cast<std::uint64_t>(memory.data()), tensor_count * row_count, row_width * 4, row_width * 4};
  }
  tmap_row_matrix c_matrix(const std::array<float, value_count>& memory) const {
    const ragged::row_matrix made = matrix(memory);
    return {sizeof(tmap_row_matrix), 0, made.address, made.rows, made.row_bytes, made.pitch_bytes};
  }
  ragged::cast_values cpp_cast() const { return {ragged::value_type::f32, ragged::value_type::f32, cast.scale}; }

  /// Returns a workspace that is good unless a GPU uses it, because it lies in host memory.
  static workspace scratch() { return {somewhere<void>(), what_fails.reads_memory() ? 0u : 1u << 30}; }
  /// Returns an index that is good unless a GPU uses it, for operations without a workspace.
  ragged::row_index device_index() const {
    return {index.rows, index.count, scratch().memory == nullptr ? 3u : index.bytes};
  }
  ragged::row_index index_for(const ragged::run& with) const {
    const bool is_here = std::holds_alternative<on_host>(with.where);
    return is_here ? ragged::row_index{index.rows, index.count, index.bytes} : device_index();
  }

  /// Returns rows whose offsets are those of `index_for`.
  ragged::padded_rows padded(const ragged::run& with) const {
    const ragged::row_index ends = index_for(with);
    return {in.data(),  tensor_count * row_count,
            out.data(), tensor_count,
            row_count,  row_width * 4,
            4,          {ends.rows, offset_format::ends, ends.bytes}};
  }
  tmap_padded_rows c_padded() const {
    tmap_padded_rows made = sized<tmap_padded_rows>();
    made.element_bytes = 4;
    made.values = reinterpret_cast<std::uint64_t>(in.data());
    made.dense = reinterpret_cast<std::uint64_t>(out.data());
    made.rows = tensor_count * row_count;
    made.count = tensor_count;
    made.longest = row_count;
    made.row_bytes = row_width * 4;
    made.offsets.values = index.rows;
    made.offsets.bytes = index.bytes;
    return made;
  }
  /// Returns a run for calls that report nothing.
  static ragged::run silent(const ragged::run& with) {
    ragged::run made = with;
    made.statuses = nullptr;
    made.header = nullptr;
    return made;
  }

  alignas(128) std::array<float, value_count> in;
  alignas(128) std::array<float, value_count> out;
  std::array<float, tensor_count * row_count> scales{};
  side from{in.data()};
  side to{out.data()};
  side turned{out.data()};
  side sums{out.data(), 1};
  side narrow{out.data()};
  side factors{scales.data(), 1};
  side one_row{out.data(), row_width, 1};
  std::array<std::int32_t, 4> rows{3, 2, 1, 0};
  std::array<std::uint32_t, 8> statuses{};
  alignas(16) tmap_batch_header header{};
  tmap_dense_batch dense = sized<tmap_dense_batch>();
  tmap_packed_buffer packed = sized<tmap_packed_buffer>();
  tmap_row_index index = sized<tmap_row_index>();
  tmap_cast_values cast = sized<tmap_cast_values>();
  tmap_quantize_values quantize = sized<tmap_quantize_values>();
  tmap_call call = host_call();
  tmap_call index_call = host_call();  ///< for calls that need no workspace
};

/// Operations on a device do all of their work or none.
struct device_operands : operands {
  static constexpr bool may_do_a_part = false;

  device_operands() {
    call = call_in(scratch().memory, scratch().bytes);
    index_call = sized<tmap_call>();
    index.bytes = device_index().bytes;
  }
};

/// Checks `call(operands, run)` on both engines.
template <class Call>
public_call on_both(const char* name, const Call& call) {
  const public_call here = in<operands>(name, [=](operands& s) { return call(s, s.here()); });
  const public_call there = in<device_operands>(name, [=](device_operands& s) { return call(s, s.on_a_stream()); });
  return {name, [=] {
            here.check();
            there.check();
          }};
}

std::vector<public_call> calls_of_cpp() {
  using o = operands;
  using how = ragged::run;
  return {
      plain("tmap::ragged::workspace_bytes", [] { return ragged::workspace_bytes(10, 2); }),
      on_both("tmap::ragged::copy",
              [](o& s, const how& with) { return ragged::copy(s.from.as_cpp(), s.to.as_cpp(), with); }),
      on_both("tmap::ragged::pack",
              [](o& s, const how& with) { return ragged::pack(s.from.as_cpp(), interop::library_of(s.packed), with); }),
      on_both(
          "tmap::ragged::unpack",
          [](o& s, const how& with) { return ragged::unpack(interop::library_of(s.packed), s.from.as_cpp(), with); }),
      on_both(
          "tmap::ragged::pad",
          [](o& s, const how& with) { return ragged::pad(s.from.as_cpp(), interop::library_of(s.dense), {}, with); }),
      on_both("tmap::ragged::unpad",
              [](o& s, const how& with) { return ragged::unpad(interop::library_of(s.dense), s.from.as_cpp(), with); }),
      on_both("tmap::ragged::gather_rows",
              [](o& s, const how& with) {
                return ragged::gather_rows(s.matrix(s.in), s.index_for(with), s.matrix(s.out), with);
              }),
      on_both("tmap::ragged::scatter_rows",
              [](o& s, const how& with) {
                return ragged::scatter_rows(s.matrix(s.in), s.index_for(with), s.matrix(s.out), with);
              }),
      on_both("tmap::ragged::pad_rows",
              [](o& s, const how& with) { return ragged::pad_rows(s.padded(with), {}, o::silent(with)); }),
      on_both("tmap::ragged::unpad_rows",
              [](o& s, const how& with) { return ragged::unpad_rows(s.padded(with), o::silent(with)); }),
      on_both("tmap::ragged::transpose",
              [](o& s, const how& with) { return ragged::transpose(s.from.as_cpp(), s.turned.as_cpp(), with); }),
      on_both("tmap::ragged::cast",
              [](o& s, const how& with) { return ragged::cast(s.from.as_cpp(), s.to.as_cpp(), s.cpp_cast(), with); }),
      // A factor of 0 makes a second call yield the same, no matter what part of the first was
      // done.
      on_both("tmap::ragged::saxpy",
              [](o& s, const how& with) { return ragged::saxpy(0, s.from.as_cpp(), s.to.as_cpp(), with); }),
      on_both("tmap::ragged::max_pool_1d",
              [](o& s, const how& with) { return ragged::max_pool_1d(s.from.as_cpp(), s.to.as_cpp(), 2, with); }),
      on_both("tmap::ragged::reduce_rows",
              [](o& s, const how& with) {
                return ragged::reduce_rows(s.from.as_cpp(), ragged::value_type::f32, ragged::row_reduction::sum,
                                           s.sums.as_cpp(), with);
              }),
      on_both("tmap::ragged::quantize",
              [](o& s, const how& with) {
                return ragged::quantize(s.from.as_cpp(), s.narrow.as_cpp(), s.factors.as_cpp(),
                                        interop::library_of(s.quantize), with);
              }),
      on_both("tmap::ragged::column_sums",
              [](o& s, const how& with) {
                return ragged::column_sums(s.from.as_cpp(), ragged::value_type::f32, s.one_row.as_cpp(),
                                           ragged::value_type::f32, with);
              }),
  };
}

/// Returns the operations of C, which run on the engine that the operands' `call` names.
template <class Operands>
std::vector<public_call> c_operations(int overloads) {
  using o = Operands;
  return {
      in<o>(
          "tmap_ragged_copy", [](o& s) { return tmap_ragged_copy(&s.from.batch, &s.to.batch, &s.call); }, overloads),
      in<o>(
          "tmap_ragged_pack", [](o& s) { return tmap_ragged_pack(&s.from.batch, &s.packed, &s.call); }, overloads),
      in<o>(
          "tmap_ragged_unpack", [](o& s) { return tmap_ragged_unpack(&s.packed, &s.from.batch, &s.call); }, overloads),
      in<o>(
          "tmap_ragged_pad", [](o& s) { return tmap_ragged_pad(&s.from.batch, &s.dense, nullptr, &s.call); },
          overloads),
      in<o>(
          "tmap_ragged_unpad", [](o& s) { return tmap_ragged_unpad(&s.dense, &s.from.batch, &s.call); }, overloads),
      in<o>(
          "tmap_ragged_gather_rows",
          [](o& s) {
            const tmap_row_matrix from = s.c_matrix(s.in);
            const tmap_row_matrix to = s.c_matrix(s.out);
            return tmap_ragged_gather_rows(&from, &s.index, &to, &s.index_call);
          },
          overloads),
      in<o>(
          "tmap_ragged_scatter_rows",
          [](o& s) {
            const tmap_row_matrix from = s.c_matrix(s.in);
            const tmap_row_matrix to = s.c_matrix(s.out);
            return tmap_ragged_scatter_rows(&from, &s.index, &to, &s.index_call);
          },
          overloads),
      in<o>(
          "tmap_ragged_pad_rows",
          [](o& s) {
            const tmap_padded_rows rows = s.c_padded();
            return tmap_ragged_pad_rows(&rows, nullptr, &s.index_call);
          },
          overloads),
      in<o>(
          "tmap_ragged_unpad_rows",
          [](o& s) {
            const tmap_padded_rows rows = s.c_padded();
            return tmap_ragged_unpad_rows(&rows, &s.index_call);
          },
          overloads),
      in<o>(
          "tmap_ragged_transpose", [](o& s) { return tmap_ragged_transpose(&s.from.batch, &s.turned.batch, &s.call); },
          overloads),
      in<o>(
          "tmap_ragged_cast", [](o& s) { return tmap_ragged_cast(&s.from.batch, &s.to.batch, &s.cast, &s.call); },
          overloads),
      in<o>(
          "tmap_ragged_saxpy", [](o& s) { return tmap_ragged_saxpy(0, &s.from.batch, &s.to.batch, &s.call); },
          overloads),
      in<o>(
          "tmap_ragged_max_pool_1d",
          [](o& s) { return tmap_ragged_max_pool_1d(&s.from.batch, &s.to.batch, 2, &s.call); }, overloads),
      in<o>(
          "tmap_ragged_reduce_rows",
          [](o& s) {
            return tmap_ragged_reduce_rows(&s.from.batch, TMAP_VALUE_F32, TMAP_ROWS_SUM, &s.sums.batch, &s.call);
          },
          overloads),
      in<o>(
          "tmap_ragged_quantize",
          [](o& s) {
            return tmap_ragged_quantize(&s.from.batch, &s.narrow.batch, &s.factors.batch, &s.quantize, &s.call);
          },
          overloads),
      in<o>(
          "tmap_ragged_column_sums",
          [](o& s) {
            return tmap_ragged_column_sums(&s.from.batch, TMAP_VALUE_F32, &s.one_row.batch, TMAP_VALUE_F32, &s.call);
          },
          overloads),
  };
}

std::vector<public_call> c_questions() {
  return {
      plain("tmap_ragged_workspace_bytes",
            [] {
              std::uint64_t needed = 0;
              return tmap_ragged_workspace_bytes(10, 2, &needed);
            }),
      plain("tmap_choose_route",
            [] {
              const tmap_tensor_layout layout = sized<tmap_tensor_layout>();
              std::uint32_t route = 0;
              std::uint32_t reason = 0;
              return tmap_choose_route(&layout, 0, 0, &route, &reason);
            }),
  };
}

}  // namespace

std::vector<public_call> ragged_calls() {
  std::vector<public_call> all = calls_of_cpp();
  for (const auto& list : {c_questions(), c_operations<operands>(no_enqueued_call), c_operations<device_operands>(1)}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

}  // namespace tmap::testing
