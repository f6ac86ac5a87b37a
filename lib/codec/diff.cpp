// SPDX-License-Identifier: Apache-2.0
#include <tmap/decode.hpp>

#include <new>

#include "lib/codec/field_text.hpp"
#include "lib/codec/layout.hpp"

namespace tmap {
namespace {

std::string text_in(const codec::field& f, const tensor_map& map) {
  return codec::exists_in(f, codec::layout_of(map)) ? codec::text_of(f, codec::read(map, f)) : "absent";
}

void add_if_different(std::vector<field_difference>& found, std::string name, std::string first, std::string second) {
  if (first != second) found.push_back({std::move(name), std::move(first), std::move(second)});
}

std::vector<field_difference> differences(const tensor_map& first, const tensor_map& second) {
  const std::uint32_t layouts = codec::layout_of(first) | codec::layout_of(second);
  std::vector<field_difference> found;
  for (const codec::field& f : codec::table) {
    if (codec::exists_in(f, layouts)) add_if_different(found, f.name, text_in(f, first), text_in(f, second));
  }
  for (std::uint32_t word = 0; word < 16; ++word) {
    add_if_different(found, codec::unknown_bits_name(word),
                     codec::hexadecimal(codec::unknown_bits(first, word, layouts)),
                     codec::hexadecimal(codec::unknown_bits(second, word, layouts)));
  }
  return found;
}

}  // namespace

result<std::vector<field_difference>> diff(const tensor_map& first, const tensor_map& second) try {
  return differences(first, second);
} catch (const std::bad_alloc&) {
  return failure{error{.code = status::out_of_memory}};
}

}  // namespace tmap
