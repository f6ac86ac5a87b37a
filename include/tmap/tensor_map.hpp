// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

namespace tmap {

/// A tensor map: the 128-byte object that drives the copy engine. It has the bytes of
/// `CUtensorMap`, with an alignment that does not change between toolkits. Opaque: only decode.hpp
/// reads its bits. Not initialised, so that it may be in shared memory.
///
/// It is a value on the host. Pass it to a kernel as `const __grid_constant__ tmap::tensor_map`, or
/// keep it in a *slot*, a 128-byte aligned place in device memory.
struct alignas(128) tensor_map {
  std::uint64_t words[16];

  friend TMAP_HOST_DEVICE constexpr bool operator==(const tensor_map& a, const tensor_map& b) {
    for (int i = 0; i < 16; ++i) {
      if (a.words[i] != b.words[i]) return false;
    }
    return true;
  }
  friend TMAP_HOST_DEVICE constexpr bool operator!=(const tensor_map& a, const tensor_map& b) { return !(a == b); }
};

inline constexpr std::uint32_t tensor_map_bytes = 128;

static_assert(sizeof(tensor_map) == 128 && alignof(tensor_map) == 128);
static_assert(std::is_trivially_copyable_v<tensor_map> && std::is_standard_layout_v<tensor_map>);

}  // namespace tmap
