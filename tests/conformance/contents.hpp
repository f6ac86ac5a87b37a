// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/element_type.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tmap::conformance {

/// Returns the bytes that memory holds before a copy. Half of the values are corner cases of the
/// type (zeros, denormals, infinities, NaNs, extremes), and half are random bits. The bytes are the
/// same on every machine.
std::vector<std::byte> contents(element_type type, std::uint64_t seed, std::uint64_t bytes);

inline constexpr std::uint64_t arena_seed = 11;
inline constexpr std::uint64_t tile_seed = 12;

/// Fills shared memory before a load.
inline constexpr std::byte poison{0xee};

/// Returns a digest of bytes. The tests take equal digests for equal bytes.
std::uint64_t digest(std::uint64_t so_far, const std::byte* data, std::uint64_t count);

}  // namespace tmap::conformance
