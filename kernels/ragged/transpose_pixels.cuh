// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns pixels of three interleaved bytes into planes and back, straight from shared to global
// memory. A thread takes 16 pixels at a time and picks their bytes from words.

#include "kernels/ragged/transpose_piece.cuh"

#include <cstdint>

namespace tmap::kernels {

/// `Words` words from byte `at` of shared memory on, at any alignment. It reads the whole chunks
/// around them.
template <std::uint32_t Words>
struct shifted_words {
  static constexpr std::uint32_t chunks = Words / 4 + 1;
  std::uint32_t word[Words];

  __device__ shifted_words(const unsigned char* shared, std::uint32_t at) {
    std::uint32_t all[4 * chunks];
    const auto* const from = reinterpret_cast<const uint4*>(shared + at / transpose_chunk * transpose_chunk);
#pragma unroll
    for (std::uint32_t i = 0; i < chunks; ++i) {
      const uint4 chunk = from[i];
      all[4 * i] = chunk.x;
      all[4 * i + 1] = chunk.y;
      all[4 * i + 2] = chunk.z;
      all[4 * i + 3] = chunk.w;
    }
    const bool two = (at & 8) != 0;
    const bool one = (at & 4) != 0;
#pragma unroll
    for (std::uint32_t i = 0; i < Words + 2; ++i) all[i] = two ? all[i + 2] : all[i];
#pragma unroll
    for (std::uint32_t i = 0; i < Words + 1; ++i) all[i] = one ? all[i + 1] : all[i];
#pragma unroll
    for (std::uint32_t i = 0; i < Words; ++i) word[i] = __funnelshift_r(all[i], all[i + 1], at % 4 * 8);
  }
};

/// Returns one byte of each of 16 pixels that begin at byte `at`.
__device__ inline uint4 plane_chunk(const unsigned char* stage, std::uint32_t at) {
  const shifted_words<12> pixels(stage, at);
  const auto four = [&](std::uint32_t i) {
    return __byte_perm(__byte_perm(pixels.word[i], pixels.word[i + 1], 0x0630), pixels.word[i + 2], 0x5210);
  };
  return make_uint4(four(0), four(3), four(6), four(9));
}

/// Turns pixels into planes. Each thread makes chunks of a plane.
__device__ inline void store_planes(const transpose_piece& piece, const unsigned char* stage,
                                    const worker_place& worker) {
  const std::uint32_t chunks = (piece.rows + transpose_chunk - 1) / transpose_chunk + 1;
#pragma unroll 1
  for (std::uint32_t plane = 0; plane < 3; ++plane) {
    const std::uint64_t line = piece.store.address + plane * piece.destination_pitch;
    const auto phase = static_cast<std::uint32_t>(line % transpose_chunk);
    const std::uint32_t first = piece.stage.phase + plane;
#pragma unroll 1
    for (std::uint32_t chunk = worker.index; chunk < chunks; chunk += worker.count) {
      const std::uint32_t begin = chunk * transpose_chunk < phase ? 0 : chunk * transpose_chunk - phase;
      const std::uint32_t end = (chunk + 1) * transpose_chunk - phase;
      if (end - begin == transpose_chunk && end <= piece.rows) {
        *reinterpret_cast<uint4*>(line + begin) = plane_chunk(stage, first + 3 * begin);
        continue;
      }
      for (std::uint32_t row = begin; row < end && row < piece.rows; ++row) {
        *reinterpret_cast<unsigned char*>(line + row) = stage[first + 3 * row];
      }
    }
  }
}

/// The twelve words of 16 pixels.
struct pixel_words {
  std::uint32_t word[12];

  __device__ pixel_words(const shifted_words<4>& a, const shifted_words<4>& b, const shifted_words<4>& c) {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      word[3 * i] = __byte_perm(__byte_perm(a.word[i], b.word[i], 0x1040), c.word[i], 0x3410);
      word[3 * i + 1] = __byte_perm(__byte_perm(a.word[i], b.word[i], 0x6205), c.word[i], 0x3250);
      word[3 * i + 2] = __byte_perm(__byte_perm(a.word[i], b.word[i], 0x0730), c.word[i], 0x7216);
    }
  }
  __device__ uint4 chunk(std::uint32_t i) const {
    return make_uint4(word[4 * i], word[4 * i + 1], word[4 * i + 2], word[4 * i + 3]);
  }
};

/// Turns planes into pixels. Each thread makes three chunks of pixels. They begin at pixels number
/// `first` modulo 16, as 3 * 5 = -1 modulo 16.
__device__ inline void store_pixels(const transpose_piece& piece, const unsigned char* stage,
                                    const worker_place& worker) {
  const auto phase = static_cast<std::uint32_t>(piece.store.address % transpose_chunk);
  const std::uint32_t first = 5 * phase % transpose_chunk;
  const std::uint32_t planes[]{piece.stage.begin_of(0), piece.stage.begin_of(1), piece.stage.begin_of(2)};
  const std::uint32_t groups = (piece.columns + transpose_chunk - 1) / transpose_chunk + 1;
#pragma unroll 1
  for (std::uint32_t group = worker.index; group < groups; group += worker.count) {
    const std::uint32_t end = group * transpose_chunk + first;
    const std::uint32_t begin = end < transpose_chunk ? 0 : end - transpose_chunk;
    if (end - begin == transpose_chunk && end <= piece.columns) {
      auto* const to = reinterpret_cast<uint4*>(piece.store.address + 3 * begin);
      const pixel_words pixels({stage, planes[0] + begin}, {stage, planes[1] + begin}, {stage, planes[2] + begin});
      to[0] = pixels.chunk(0);
      to[1] = pixels.chunk(1);
      to[2] = pixels.chunk(2);
      continue;
    }
    for (std::uint32_t pixel = begin; pixel < end && pixel < piece.columns; ++pixel) {
      for (std::uint32_t plane = 0; plane < 3; ++plane) {
        *reinterpret_cast<unsigned char*>(piece.store.address + 3 * pixel + plane) = stage[planes[plane] + pixel];
      }
    }
  }
}

}  // namespace tmap::kernels
