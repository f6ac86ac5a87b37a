// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/any_spec.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tmap::tool {
namespace {

using json = nlohmann::ordered_json;

template <class Number>
json array_of(const Number* numbers, std::uint32_t count) {
  json list = json::array();
  for (std::uint32_t i = 0; i < count; ++i) list.push_back(numbers[i]);
  return list;
}

void add_window(json& object, const im2col_window& window, std::uint32_t rank) {
  const std::uint32_t spatial = rank < 2 ? 0 : rank - 2;
  object["channels_per_pixel"] = window.channels_per_pixel;
  object["pixels_per_column"] = window.pixels_per_column;
  object["lower_corner"] = array_of(window.lower_corner, spatial);
  object["upper_corner"] = array_of(window.upper_corner, spatial);
}

}  // namespace

im2col_spec any_spec::im2col() const {
  im2col_spec whole{.tensor = spec};
  if (!window) return whole;
  std::copy_n(window->lower_corner, 3, whole.lower_corner);
  std::copy_n(window->upper_corner, 3, whole.upper_corner);
  whole.channels_per_pixel = window->channels_per_pixel;
  whole.pixels_per_column = window->pixels_per_column;
  return whole;
}

violations any_spec::broken(const device_limits& limits) const {
  return window ? validate(im2col(), limits) : validate(spec, limits);
}

bool any_spec::is_legal(const device_limits& limits) const {
  return window ? broken_rules(im2col(), limits).empty() : broken_rules(spec, limits).empty();
}

result<tensor_map> any_spec::encoded(const device_limits& limits) const {
  return window ? encode_bits(im2col(), limits) : encode_bits(spec, limits);
}

std::uint64_t any_spec::load_bytes() const {
  if (!window) return tile_bytes(spec);
  return element_bytes(spec.type, window->channels_per_pixel) * window->pixels_per_column;
}

std::uint64_t any_spec::shared_bytes() const {
  if (!window) return tile_footprint_bytes(spec);
  const std::uint64_t row = element_bytes(spec.type, window->channels_per_pixel);
  return std::max<std::uint64_t>(row, swizzle_span_bytes(spec.swizzle)) * window->pixels_per_column;
}

nlohmann::ordered_json any_spec::json() const {
  const std::uint32_t rank = std::min(spec.rank, max_rank);
  nlohmann::ordered_json object{
      {"kind", window ? "im2col" : "tiled"},
      {"rank", spec.rank},
      {"element_type", name(spec.type)},
      {"interleave", name(spec.interleave)},
      {"swizzle", name(spec.swizzle)},
      {"oob_fill", name(spec.oob_fill)},
      {"l2_promotion", name(spec.l2_promotion)},
      {"global_address", fmt::format("{:#x}", static_cast<std::uint64_t>(spec.global_address))},
      {"global_dim", array_of(spec.global_dim, rank)},
      {"global_stride_bytes", array_of(spec.global_stride_bytes, rank == 0 ? 0 : rank - 1)}};
  if (!window) object["box_dim"] = array_of(spec.box_dim, rank);
  object["element_stride"] = array_of(spec.element_stride, rank);
  if (window) add_window(object, *window, rank);
  return object;
}

nlohmann::ordered_json words_as_json(const tensor_map& map) {
  nlohmann::ordered_json words = nlohmann::ordered_json::array();
  for (const std::uint64_t word : map.words) words.push_back(fmt::format("{:#018x}", word));
  return words;
}

}  // namespace tmap::tool
