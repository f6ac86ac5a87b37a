// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/spec.h>
#include <tmap/decode.hpp>
#include <tmap/encode.hpp>
#include <tmap/validate.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

#include "lib/interop/convert.hpp"
#include "lib/interop/inputs.hpp"
#include "lib/spec/rule_error.hpp"

namespace tmap::interop {
namespace {

constexpr auto encode_any = [](const auto& spec) { return encode(spec); };

constexpr auto list_violations = [](const auto& spec, const device_limits& limits, cuda::std::span<tmap_violation> list,
                                    std::uint32_t& count) -> answer {
  const violations found = validate(spec, limits);
  count = found.size();
  for (std::uint32_t i = 0; i < std::min<std::size_t>(list.size(), found.size()); ++i) {
    list[i] = {static_cast<std::uint32_t>(found[i].id), found[i].axis, found[i].found, found[i].allowed};
  }
  return detail::has_error(found) ? answer{detail::error_of(status::rule_broken, found)} : answer{};
};

std::string with_remedies(const violations& found, const tensor_spec& spec) {
  std::string text;
  for (const violation& each : found) {
    text += support::or_throw(to_string(each)) + "\n  " + support::or_throw(remedy(each, spec.type)) + '\n';
  }
  return text.empty() ? to_string(found) : text.substr(0, text.size() - 1);
}

constexpr auto explain = [](const tensor_spec& spec, const device_limits& limits, const text_output& to) {
  return to.write_made(with_remedies(validate(spec, limits), spec));
};
constexpr auto explain_im2col = [](const im2col_spec& spec, const device_limits& limits, const text_output& to) {
  return to.write_made(with_remedies(validate(spec, limits), spec.tensor));
};

/// The members of a packed spec, as arguments of their own.
struct packed_input {
  void check(arguments& all) const {
    all.enumerator(type, element_type_count - 1, "element_type");
    all.range(rank, 1, max_rank, "rank");
    all.pointer(dims, "dims");
    all.pointer(box, "box");
  }
  tensor_spec value() const {
    return packed_spec(static_cast<element_type>(type), global_address, {dims, rank}, {box, rank});
  }

  std::uint32_t type;
  std::uint64_t global_address;
  std::uint32_t rank;
  const std::uint64_t* dims;
  const std::uint32_t* box;
};

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_packed_spec(uint32_t element_type, uint64_t global_address, uint32_t rank, const uint64_t* dims,
                             const uint32_t* box, tmap_tensor_spec* spec) {
  const auto write = [](const tmap::tensor_spec& made, tmap_tensor_spec& to) -> answer {
    to = c_of(made);
    return {};
  };
  return run(__func__, write, packed_input{element_type, global_address, rank, dims, box}, output{"spec", spec});
}

tmap_status tmap_validate(const tmap_tensor_spec* spec, const tmap_device_limits* limits, tmap_violation* violations,
                          uint32_t capacity, uint32_t* count) {
  return run(__func__, list_violations, input{"spec", spec}, optional_input{"limits", limits},
             array{"violations", violations, capacity}, output{"count", count});
}

tmap_status tmap_validate_im2col(const tmap_im2col_spec* spec, const tmap_device_limits* limits,
                                 tmap_violation* violations, uint32_t capacity, uint32_t* count) {
  return run(__func__, list_violations, input{"spec", spec}, optional_input{"limits", limits},
             array{"violations", violations, capacity}, output{"count", count});
}

tmap_status tmap_explain(const tmap_tensor_spec* spec, const tmap_device_limits* limits, char* text, size_t capacity,
                         size_t* length) {
  return run(__func__, explain, input{"spec", spec}, optional_input{"limits", limits},
             text_output{text, capacity, length});
}

tmap_status tmap_explain_im2col(const tmap_im2col_spec* spec, const tmap_device_limits* limits, char* text,
                                size_t capacity, size_t* length) {
  return run(__func__, explain_im2col, input{"spec", spec}, optional_input{"limits", limits},
             text_output{text, capacity, length});
}

tmap_status tmap_encode(const tmap_tensor_spec* spec, tmap_tensor_map* map) {
  return ask(__func__, output{"map", map}, encode_any, input{"spec", spec});
}

tmap_status tmap_encode_im2col(const tmap_im2col_spec* spec, tmap_tensor_map* map) {
  return ask(__func__, output{"map", map}, encode_any, input{"spec", spec});
}

tmap_status tmap_encode_bits(const tmap_tensor_spec* spec, tmap_tensor_map* map) {
  return ask(
      __func__, output{"map", map}, [](const auto& of) { return tmap::encode_bits(of); }, input{"spec", spec});
}

tmap_status tmap_replace_address(const tmap_tensor_map* map, uint64_t global_address, tmap_tensor_map* moved) {
  return ask(__func__, output{"moved", moved}, tmap::replace_address, input{"map", map}, as_is{global_address});
}

tmap_status tmap_query_device_limits(tmap_device_limits* limits) {
  return ask(__func__, sized_output{"limits", limits}, tmap::query_device_limits);
}

tmap_status tmap_decode(const tmap_tensor_map* map, tmap_decoded_map* decoded) {
  return ask(
      __func__, sized_output{"decoded", decoded}, [](const auto& of) { return tmap::decode(of); }, input{"map", map});
}

tmap_status tmap_describe(const tmap_tensor_map* map, char* text, size_t capacity, size_t* length) {
  return run(
      __func__, [](const auto& of, const auto& to) { return to.write_made(tmap::describe(of)); }, input{"map", map},
      text_output{text, capacity, length});
}

tmap_status tmap_describe_json(const tmap_tensor_map* map, char* text, size_t capacity, size_t* length) {
  return run(
      __func__, [](const auto& of, const auto& to) { return to.write_made(tmap::describe_json(of)); },
      input{"map", map}, text_output{text, capacity, length});
}
