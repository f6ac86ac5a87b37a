// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lib/codec/layout.hpp"

namespace tmap::codec {

/// Returns a field's value for a person to read: "f16", "4096", "0x7f0000000000", "invalid (15)".
std::string text_of(const field& f, std::uint64_t value);

/// Whether a field has a meaning in this map: it exists in the map's layout, and its dimension is
/// below the rank or has bits set.
bool is_worth_showing(const field& f, const tensor_map& map);

/// Holds "word N, unknown bits" and the bits of that word that belong to no field of these layouts.
std::string unknown_bits_name(std::uint32_t word);
std::uint64_t unknown_bits(const tensor_map& map, std::uint32_t word, std::uint32_t layouts);

std::string hexadecimal(std::uint64_t value);

}  // namespace tmap::codec
