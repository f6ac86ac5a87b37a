// SPDX-License-Identifier: Apache-2.0
#include <tmap/map_fields.hpp>

#include <new>

#include "lib/codec/field_text.hpp"
#include "lib/codec/layout.hpp"

namespace tmap {
namespace {

map_bits bits_of(const codec::bit_range& range) {
  return {range.word, range.shift, range.width};
}

}  // namespace

result<std::vector<map_field>> fields_of(const tensor_map& map) try {
  std::vector<map_field> fields;
  for (const codec::field& f : codec::table) {
    if (!codec::is_worth_showing(f, map)) continue;
    fields.push_back({f.name, codec::text_of(f, codec::read(map, f)), bits_of(f.low), bits_of(f.high)});
  }
  return fields;
} catch (const std::bad_alloc&) {
  return failure{error{.code = status::out_of_memory}};
}

}  // namespace tmap
