// SPDX-License-Identifier: Apache-2.0
#include "apps/drawing/banks.hpp"

#include <fmt/format.h>
#include <tmap/tile_layout.hpp>

#include <algorithm>
#include <set>

namespace tmap::drawing {
namespace {

constexpr std::uint32_t word_bytes = 4;
constexpr std::uint32_t lanes = 32;

bank_load load_at_once(const std::uint32_t* addresses, std::size_t count, std::uint32_t bytes) {
  std::set<std::uint32_t> words;
  for (std::size_t lane = 0; lane < count; ++lane) {
    for (std::uint32_t byte = 0; byte < bytes; ++byte) words.insert((addresses[lane] + byte) / word_bytes);
  }
  bank_load load{};
  for (const std::uint32_t word : words) ++load.at(word % bank_count);
  return load;
}

/// Names what one lane reads: a byte of a row, all axes above the innermost counted as one.
struct tile_place {
  std::uint32_t row;
  std::uint32_t byte;
};

/// Returns the address of a place in a tile without gaps between its rows.
std::uint32_t plain_address(const tensor_spec& spec, const tile_place& place) {
  return place.row * static_cast<std::uint32_t>(tile_row_bytes(spec)) + place.byte;
}

std::uint32_t swizzled_address(const tile_layout& layout, const tile_place& place) {
  return swizzled(place.row * layout.row_pitch_bytes + place.byte, layout.swizzle);
}

template <class PlaceOf>
tile_read read_of(const tensor_spec& spec, std::string name, std::string meaning, std::uint32_t count,
                  std::uint32_t bytes, const PlaceOf& place_of) {
  const tile_layout layout = layout_of(spec);
  std::vector<std::uint32_t> swizzled_places, plain_places;
  for (std::uint32_t lane = 0; lane < count; ++lane) {
    swizzled_places.push_back(swizzled_address(layout, place_of(lane)));
    plain_places.push_back(plain_address(spec, place_of(lane)));
  }
  return {std::move(name), std::move(meaning), load_of(swizzled_places, bytes), load_of(plain_places, bytes)};
}

}  // namespace

bank_load load_of(const std::vector<std::uint32_t>& addresses, std::uint32_t bytes) {
  const std::size_t at_once = bytes <= word_bytes ? lanes : lanes * word_bytes / bytes;
  bank_load worst{};
  for (std::size_t first = 0; first < addresses.size(); first += at_once) {
    const bank_load load = load_at_once(addresses.data() + first, std::min(at_once, addresses.size() - first), bytes);
    if (ways_of(load) > ways_of(worst)) worst = load;
  }
  return worst;
}

std::uint32_t ways_of(const bank_load& load) {
  return *std::max_element(load.begin(), load.end());
}

std::vector<tile_read> common_reads(const tensor_spec& spec) {
  constexpr std::uint32_t matrix_rows = 8, matrix_bytes = 16;
  const tile_layout layout = layout_of(spec);
  const std::uint32_t bytes = layout.element_bytes;
  const std::uint32_t rows = layout.elements() / layout.dim[0];
  const std::uint32_t in_row = std::min(lanes, layout.dim[0]);
  const std::uint32_t in_column = std::min(lanes, rows);
  std::vector<tile_read> reads;
  reads.push_back(read_of(spec, "a row", fmt::format("lanes 0-{} read neighbouring elements of row 0", in_row - 1),
                          in_row, bytes, [&](std::uint32_t lane) {
                            return tile_place{0, lane * bytes};
                          }));
  if (rows > 1) {
    reads.push_back(read_of(spec, "a column", fmt::format("lane i reads element 0 of row i, for {} rows", in_column),
                            in_column, bytes, [](std::uint32_t lane) {
                              return tile_place{lane, 0};
                            }));
  }
  if (rows >= matrix_rows) {
    reads.push_back(read_of(spec, "ldmatrix", "8 lanes read the first 16 bytes of 8 rows", matrix_rows, matrix_bytes,
                            [](std::uint32_t lane) {
                              return tile_place{lane, 0};
                            }));
  }
  return reads;
}

}  // namespace tmap::drawing
