// SPDX-License-Identifier: Apache-2.0
#pragma once

// A warp loads a part of a row into shared memory, by each route. It keeps the part's address
// modulo 16 bytes, so that all but its ends moves in units of 16 bytes for every address.

#include "kernels/ragged/planned_tensor.hpp"

#include <tmap/device/async_copy.cuh>
#include <tmap/device/bulk_copy.cuh>

#include <cstdint>

namespace tmap::kernels {

/// A stage is full when the lane that announced the copy engine's bytes, and the LDGSTS copies of
/// all 32, have arrived.
inline constexpr std::uint32_t stage_arrivals = 33;
inline constexpr std::uint32_t unit_bytes = 16;

/// Bytes of a row in global memory: those before the first whole unit, the whole units, and those
/// after the last.
struct span {
  std::uint64_t address;
  std::uint32_t head;
  std::uint32_t body;
  std::uint32_t tail;

  __device__ span(std::uint64_t from, std::uint32_t bytes) : address(from) {
    const std::uint32_t lead = static_cast<std::uint32_t>(-from) % unit_bytes;
    head = lead < bytes ? lead : bytes;
    body = (bytes - head) / unit_bytes * unit_bytes;
    tail = bytes - head - body;
  }
};

namespace detail {

__device__ inline void load_units_async(unsigned char* to, const unsigned char* from, std::uint32_t bytes) {
  for (std::uint32_t at = threadIdx.x % 32 * unit_bytes; at < bytes; at += 32 * unit_bytes) {
    device::copy_async<unit_bytes>(to + at, from + at);
  }
}

__device__ inline void load_units_plain(unsigned char* to, const unsigned char* from, std::uint32_t bytes) {
  constexpr std::uint32_t step = 32 * unit_bytes;
  constexpr std::uint32_t batch = 8;
  std::uint32_t at = threadIdx.x % 32 * unit_bytes;
  for (; at + (batch - 1) * step < bytes; at += batch * step) {
    uint4 held[batch];
#pragma unroll
    for (std::uint32_t i = 0; i < batch; ++i) held[i] = __ldcs(reinterpret_cast<const uint4*>(from + at + i * step));
#pragma unroll
    for (std::uint32_t i = 0; i < batch; ++i) *reinterpret_cast<uint4*>(to + at + i * step) = held[i];
  }
  for (; at < bytes; at += step) {
    *reinterpret_cast<uint4*>(to + at) = __ldcs(reinterpret_cast<const uint4*>(from + at));
  }
}

/// Loads head and tail, at most 30 bytes, with at most one part a lane.
__device__ inline void load_ends(unsigned char* to, const span& part, bool by_words) {
  const auto* const from = reinterpret_cast<const unsigned char*>(part.address);
  const std::uint32_t unit = by_words ? 4 : 1;
  const std::uint32_t place = threadIdx.x % 32 * unit;
  if (place >= part.head + part.tail) return;
  const std::uint32_t at = place < part.head ? place : place + part.body;
  if (by_words) {
    device::copy_async<4>(to + at, from + at);
  } else {
    to[at] = from[at];
  }
}

}  // namespace detail

/// Starts loading `part`. All lanes call it. `to` and the part's address are equal modulo 16. If
/// `way` is `bulk`, the bytes of its body have been announced.
__device__ inline void load_span(unsigned char* to, const span& part, route way, device::tile_barrier& full) {
  const auto* const from = reinterpret_cast<const unsigned char*>(part.address) + part.head;
  if (way == route::bulk) {
    if (threadIdx.x % 32 == 0 && part.body != 0) device::load_bytes(to + part.head, from, part.body, full);
  } else if (way == route::ldgsts) {
    detail::load_units_async(to + part.head, from, part.body);
  } else {
    detail::load_units_plain(to + part.head, from, part.body);
  }
  const bool by_words = way != route::plain && (part.address | part.head | part.tail) % 4 == 0;
  detail::load_ends(to, part, by_words);
}

}  // namespace tmap::kernels
