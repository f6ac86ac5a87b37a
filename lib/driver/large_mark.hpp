// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_map.hpp>

#include "lib/codec/layout.hpp"

namespace tmap::driver {

/// The map without the mark by which Blackwell's driver says that 128 KiB from its address on may
/// be read (documented only; Hopper's driver never writes it). tensormap.replace leaves the mark
/// alone, so that a map made from a marked template of a smaller tensor would be a lie, and its
/// first copy an illegal access.
constexpr tensor_map without_large_mark(const tensor_map& map) {
  constexpr codec::bit_range mark = codec::row("large_tensor").low;
  tensor_map made = map;
  made.words[mark.word] &= ~mark.mask();
  return made;
}

}  // namespace tmap::driver
