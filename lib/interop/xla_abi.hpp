// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The part of XLA's binary interface of foreign functions that handlers use. Each struct begins
// with its size, and grows at its end only within a major version.

namespace tmap::interop::xla {

inline constexpr int api_major = 0;
inline constexpr int api_minor = 4;

enum class element : std::uint32_t { s32 = 4, s64 = 5, u8 = 6, f16 = 10, f32 = 11, bf16 = 16 };
enum class error_code : std::uint32_t {
  invalid_argument = 3,
  resource_exhausted = 8,
  unimplemented = 12,
  internal = 13
};
inline constexpr std::uint32_t metadata_extension = 1;
inline constexpr std::uint32_t execute_stage = 3;
inline constexpr std::uint32_t buffer_kind = 1;
inline constexpr std::uint32_t scalar_kind = 3;
inline constexpr std::uint32_t command_buffer_compatible = 1;

struct extension {
  std::size_t struct_size;
  std::uint32_t type;
  extension* next;
};

struct api_version {
  std::size_t struct_size;
  extension* extensions;
  std::int32_t major;
  std::int32_t minor;
};

struct metadata {
  std::size_t struct_size;
  api_version version;
  std::uint32_t traits;
};

struct metadata_request {
  extension base;
  metadata* answer;
};

struct error_request {
  std::size_t struct_size;
  extension* extensions;
  const char* message;
  error_code code;
};

struct stream_request {
  std::size_t struct_size;
  extension* extensions;
  void* context;
  void* stream;  // gets the result
};

/// XLA's functions. Members that handlers do not call are `void*`.
struct api {
  std::size_t struct_size;
  extension* extensions;
  api_version version;
  const void* internal;
  void* (*create_error)(error_request*);
  void* get_error_details;
  void* destroy_error;
  void* register_handler;
  void* (*get_stream)(stream_request*);
};

struct buffer {
  std::size_t struct_size;
  extension* extensions;
  element type;
  void* data;
  std::int64_t rank;
  const std::int64_t* dims;
};

/// Arguments or results.
struct buffers {
  std::size_t struct_size;
  extension* extensions;
  std::int64_t count;
  const std::uint32_t* kinds;
  void* const* values;
};

struct text {
  const char* begin;
  std::size_t length;
};

struct scalar {
  element type;
  const void* value;
};

struct attributes {
  std::size_t struct_size;
  extension* extensions;
  std::int64_t count;
  const std::uint32_t* kinds;
  const text* const* names;
  void* const* values;
};

struct call_frame {
  std::size_t struct_size;
  extension* extensions;
  const struct api* api;
  void* context;
  std::uint32_t stage;
  buffers arguments;
  buffers results;
  struct attributes attributes;
};

static_assert(sizeof(void*) == 8 && sizeof(std::size_t) == 8);
static_assert(offsetof(extension, type) == 8 && sizeof(extension) == 24 && sizeof(api_version) == 24);
static_assert(offsetof(metadata, version) == 8 && offsetof(metadata, traits) == 32);
static_assert(offsetof(metadata_request, answer) == 24);
static_assert(offsetof(error_request, code) == 24 && offsetof(stream_request, stream) == 24);
static_assert(offsetof(api, version) == 16 && offsetof(api, create_error) == 48 && offsetof(api, get_stream) == 80);
static_assert(offsetof(buffer, type) == 16 && offsetof(buffer, data) == 24 && offsetof(buffer, dims) == 40);
static_assert(offsetof(buffers, values) == 32 && sizeof(buffers) == 40);
static_assert(offsetof(attributes, values) == 40 && sizeof(attributes) == 48);
static_assert(offsetof(scalar, value) == 8);
static_assert(offsetof(call_frame, api) == 16 && offsetof(call_frame, stage) == 32);
static_assert(offsetof(call_frame, arguments) == 40 && offsetof(call_frame, results) == 80);
static_assert(offsetof(call_frame, attributes) == 120 && sizeof(call_frame) == 168);

/// XLA's sizes of structs leave the padding at the end out.
inline constexpr std::size_t error_request_size = offsetof(error_request, code) + sizeof(error_code);
inline constexpr std::size_t metadata_size = offsetof(metadata, traits) + sizeof(std::uint32_t);

}  // namespace tmap::interop::xla
