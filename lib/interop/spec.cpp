// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/spec.h>
#include <tmap/decode.hpp>
#include <tmap/encode.hpp>
#include <tmap/validate.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

#include "lib/interop/convert_spec.hpp"
#include "lib/interop/text.hpp"
#include "lib/spec/rule_error.hpp"

namespace tmap::interop {
namespace {

void check_spec(arguments& given, const tmap_tensor_spec* spec) {
  given.structure(spec, "spec");
}

void check_spec(arguments& given, const tmap_im2col_spec* spec) {
  given.structure(spec, "spec");
  if (given) given.structure(&spec->tensor, "spec.tensor");
}

template <class Spec>
answer list_violations(const Spec* spec, const tmap_device_limits* limits, tmap_violation* list, uint32_t capacity,
                       uint32_t* count) {
  arguments given;
  check_spec(given, spec);
  given.optional_structure(limits, "limits");
  given.buffer(list, capacity, "violations");
  given.pointer(count, "count");
  if (!given) return given.complaint();
  const violations found = validate(spec_of(*spec), limits_of(limits));
  *count = found.size();
  for (std::uint32_t i = 0; i < std::min(capacity, found.size()); ++i) {
    list[i] = {static_cast<std::uint32_t>(found[i].id), found[i].axis, found[i].found, found[i].allowed};
  }
  return detail::has_error(found) ? answer{detail::error_of(status::rule_broken, found)} : answer{};
}

template <class Spec>
answer explain(const Spec* spec, const tmap_device_limits* limits, char* text, size_t capacity, size_t* length) {
  arguments given;
  check_spec(given, spec);
  given.optional_structure(limits, "limits");
  check_text(given, text, capacity, length);
  if (!given) return given.complaint();
  return write_made_text(to_string(validate(spec_of(*spec), limits_of(limits))), text, capacity, length);
}

answer write_map(const result<tensor_map>& made, tmap_tensor_map* map) {
  if (!made) return made.error();
  *map = c_map_of(*made);
  return {};
}

/// Any of the functions that make a map of a spec.
template <class Spec, class Make>
answer make_map(const Spec* spec, tmap_tensor_map* map, const Make& make) {
  arguments given;
  check_spec(given, spec);
  given.pointer(map, "map");
  return given ? write_map(make(spec_of(*spec)), map) : given.complaint();
}

answer describe_map(const tmap_tensor_map* map, std::string (*make)(const tensor_map&), char* text, size_t capacity,
                    size_t* length) {
  arguments given;
  given.pointer(map, "map");
  check_text(given, text, capacity, length);
  return given ? write_made_text(make(map_of(*map)), text, capacity, length) : given.complaint();
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_packed_spec(uint32_t element_type, uint64_t global_address, uint32_t rank, const uint64_t* dims,
                             const uint32_t* box, tmap_tensor_spec* spec) {
  return call(__func__, [&]() -> answer {
    arguments given;
    given.enumerator(element_type, tmap::element_type_count - 1, "element_type");
    given.range(rank, 1, tmap::max_rank, "rank");
    given.pointer(dims, "dims");
    given.pointer(box, "box");
    given.pointer(spec, "spec");
    if (!given) return given.complaint();
    *spec = c_spec_of(
        tmap::packed_spec(static_cast<tmap::element_type>(element_type), global_address, {dims, rank}, {box, rank}));
    return {};
  });
}

tmap_status tmap_validate(const tmap_tensor_spec* spec, const tmap_device_limits* limits, tmap_violation* violations,
                          uint32_t capacity, uint32_t* count) {
  return call(__func__, [&] { return list_violations(spec, limits, violations, capacity, count); });
}

tmap_status tmap_validate_im2col(const tmap_im2col_spec* spec, const tmap_device_limits* limits,
                                 tmap_violation* violations, uint32_t capacity, uint32_t* count) {
  return call(__func__, [&] { return list_violations(spec, limits, violations, capacity, count); });
}

tmap_status tmap_explain(const tmap_tensor_spec* spec, const tmap_device_limits* limits, char* text, size_t capacity,
                         size_t* length) {
  return call(__func__, [&] { return explain(spec, limits, text, capacity, length); });
}

tmap_status tmap_explain_im2col(const tmap_im2col_spec* spec, const tmap_device_limits* limits, char* text,
                                size_t capacity, size_t* length) {
  return call(__func__, [&] { return explain(spec, limits, text, capacity, length); });
}

tmap_status tmap_encode(const tmap_tensor_spec* spec, tmap_tensor_map* map) {
  return call(__func__, [&] { return make_map(spec, map, [](const auto& s) { return tmap::encode(s); }); });
}

tmap_status tmap_encode_im2col(const tmap_im2col_spec* spec, tmap_tensor_map* map) {
  return call(__func__, [&] { return make_map(spec, map, [](const auto& s) { return tmap::encode(s); }); });
}

tmap_status tmap_encode_bits(const tmap_tensor_spec* spec, tmap_tensor_map* map) {
  return call(__func__, [&] { return make_map(spec, map, [](const auto& s) { return tmap::encode_bits(s); }); });
}

tmap_status tmap_replace_address(const tmap_tensor_map* map, uint64_t global_address, tmap_tensor_map* moved) {
  return call(__func__, [&]() -> answer {
    arguments given;
    given.pointer(map, "map");
    given.pointer(moved, "moved");
    if (!given) return given.complaint();
    return write_map(tmap::replace_address(map_of(*map), global_address), moved);
  });
}

tmap_status tmap_query_device_limits(tmap_device_limits* limits) {
  return call(__func__, [&]() -> answer {
    arguments given;
    given.structure(limits, "limits");
    if (!given) return given.complaint();
    const tmap::result<tmap::device_limits> asked = tmap::query_device_limits();
    if (!asked) return asked.error();
    limits->compute_capability = asked->compute_capability;
    limits->shared_memory_bytes = asked->shared_memory_bytes;
    return {};
  });
}

tmap_status tmap_decode(const tmap_tensor_map* map, tmap_decoded_map* decoded) {
  return call(__func__, [&]() -> answer {
    arguments given;
    given.pointer(map, "map");
    given.structure(decoded, "decoded");
    if (!given) return given.complaint();
    const tmap::result<tmap::decoded_map> read = tmap::decode(map_of(*map));
    if (!read) return read.error();
    *decoded = c_decoded_of(*read);
    return {};
  });
}

tmap_status tmap_describe(const tmap_tensor_map* map, char* text, size_t capacity, size_t* length) {
  return call(__func__, [&] { return describe_map(map, &tmap::describe, text, capacity, length); });
}

tmap_status tmap_describe_json(const tmap_tensor_map* map, char* text, size_t capacity, size_t* length) {
  return call(__func__, [&] { return describe_map(map, &tmap::describe_json, text, capacity, length); });
}
