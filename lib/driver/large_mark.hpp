// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_map.hpp>

#include "lib/codec/layout.hpp"

namespace tmap::driver {

/// Returns the map without the mark by which Blackwell's driver allows reads of 128 KiB from its
/// address on (documented only; Hopper's driver never writes it). `tensormap.replace` does not
/// change the mark. A map of a smaller tensor made from a marked template would be wrong, and its
/// first copy an illegal access.
constexpr tensor_map without_large_mark(const tensor_map& map) {
  constexpr codec::bit_range mark = codec::row("large_tensor").low;
  tensor_map made = map;
  made.words[mark.word] &= ~mark.mask();
  return made;
}

}  // namespace tmap::driver
