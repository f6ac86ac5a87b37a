// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/xla.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "lib/interop/xla_abi.hpp"

// Plays XLA: a call frame with arrays that nobody reads, and XLA's functions.

namespace tmap::testing {

namespace xla = interop::xla;

/// Holds what a handler last reported to XLA.
struct xla_report {
  xla::error_code code;
  char message[512];  // allocates nothing: allocations fail in turn
};
inline xla_report reported;

inline void* note_error(xla::error_request* given) {
  EXPECT_EQ(given->struct_size, 28u);
  reported.code = given->code;
  std::snprintf(reported.message, sizeof reported.message, "%s", given->message);
  return &reported;
}

inline void* give_stream(xla::stream_request* asked) {
  EXPECT_EQ(asked->struct_size, 32u);
  asked->stream = asked->context;
  return nullptr;
}

inline xla::api xla_functions() {
  xla::api made{};
  made.struct_size = 200;  // of version 0.4
  made.version = {sizeof(xla::api_version), nullptr, 0, 3};
  made.create_error = &note_error;
  made.get_stream = &give_stream;
  return made;
}

/// An array of a scene.
struct xla_array {
  xla::element type;
  std::vector<std::int64_t> dims;
};

/// The integer that a handler gets as its attribute.
struct xla_number {
  xla::text word;
  xla::element type;
  std::int64_t value{};  // whose low bytes are those of s32
};

/// A call of a handler. Its frame points into it. A change of an array or of `number` is seen after
/// `connect`.
class xla_scene {
 public:
  xla_scene(void* data, std::vector<xla_array> in, std::vector<xla_array> out,
            xla_number attribute = {{"turned", 6}, xla::element::s32})
      : data_{data}, arguments{std::move(in)}, results{std::move(out)}, number{attribute} {
    connect();
  }
  xla_scene(const xla_scene& other)
      : data_{other.data_},
        arguments{other.arguments},
        results{other.results},
        number{other.number},
        functions{other.functions} {
    connect();
  }
  xla_scene& operator=(const xla_scene&) = delete;

  void connect() {
    frame = {};
    frame.struct_size = 168;
    frame.api = &functions;
    frame.stage = xla::execute_stage;
    connect(arguments, first_, frame.arguments);
    connect(results, second_, frame.results);
    scalar_ = {number.type, &number.value};
    frame.attributes = {sizeof(xla::attributes), nullptr, 1, &scalar_kind_, &name_, &attribute_};
  }

 private:
  struct side {
    std::vector<xla::buffer> buffers;
    std::vector<void*> places;
    std::vector<std::uint32_t> kinds;
  };

  void connect(const std::vector<xla_array>& from, side& through, xla::buffers& to) const {
    through.buffers.clear();
    through.places.clear();
    through.kinds.assign(from.size(), xla::buffer_kind);
    for (const xla_array& each : from) {
      through.buffers.push_back(
          {48, nullptr, each.type, data_, static_cast<std::int64_t>(each.dims.size()), each.dims.data()});
    }
    for (xla::buffer& each : through.buffers) through.places.push_back(&each);
    to = {sizeof(xla::buffers), nullptr, static_cast<std::int64_t>(from.size()), through.kinds.data(),
          through.places.data()};
  }

  void* data_;
  side first_, second_;
  std::uint32_t scalar_kind_{xla::scalar_kind};
  const xla::text* name_{&number.word};
  xla::scalar scalar_{};
  void* attribute_{&scalar_};

 public:
  std::vector<xla_array> arguments, results;
  xla_number number;
  xla::api functions{xla_functions()};
  xla::call_frame frame;
};

/// 10 groups of 100 rows, k = 32, n = 64.
inline xla_scene xla_rows_scene(void* data) {
  using enum xla::element;
  return {data, {{bf16, {100, 32}}, {bf16, {10, 32, 64}}, {s32, {10}}}, {{f32, {100, 64}}, {u8, {1 << 20}}}};
}

/// 10 groups of 100 rows, m = 32, n = 64.
inline xla_scene xla_weights_scene(void* data) {
  using enum xla::element;
  return {data, {{f16, {100, 32}}, {f16, {100, 64}}, {s32, {10}}}, {{f16, {10, 32, 64}}, {u8, {1 << 20}}}};
}

/// 3 times 10 groups of 100 rows of 8 elements, with 16 places each.
inline xla_scene xla_padding_scene(void* data, bool pads) {
  using enum xla::element;
  const xla_array values{bf16, {3, 100, 8}}, dense{bf16, {3, 10, 16, 8}}, ends{s32, {3, 10}};
  return {data, {pads ? values : dense, ends}, {pads ? dense : values}, {{"fill", 4}, s64}};
}

}  // namespace tmap::testing
