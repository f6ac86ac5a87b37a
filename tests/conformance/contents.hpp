// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/element_type.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tmap::conformance {

/// What memory holds before a copy: half corner values of the type (zeros, denormals, infinities,
/// NaNs, extremes), half random bits. The same everywhere.
std::vector<std::byte> contents(element_type type, std::uint64_t seed, std::uint64_t bytes);

inline constexpr std::uint64_t arena_seed = 11;
inline constexpr std::uint64_t tile_seed = 12;

/// What shared memory holds before a load.
inline constexpr std::byte poison{0xee};

/// A digest of bytes; equal digests mean equal bytes for all a test cares.
std::uint64_t digest(std::uint64_t so_far, const std::byte* data, std::uint64_t count);

}  // namespace tmap::conformance
