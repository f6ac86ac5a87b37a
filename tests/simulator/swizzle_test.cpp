// SPDX-License-Identifier: Apache-2.0
#include "simulator/small_tensor.hpp"

#include <tmap/tile_layout.hpp>

namespace tmap::testing {
namespace {

/// Chunk c of 128-byte line l goes to chunk c ^ l, as PTX ISA 5.5.7 draws the 128-byte swizzle.
TEST(swizzle, of_128_bytes_permutes_eight_chunks_in_eight_lines) {
  const auto mode = swizzle::bytes_128;
  for (std::uint64_t line = 0; line < 16; ++line) {
    for (std::uint64_t chunk = 0; chunk < 8; ++chunk) {
      EXPECT_EQ(swizzled(line * 128 + chunk * 16, mode), line * 128 + (chunk ^ (line % 8)) * 16);
    }
  }
}

TEST(swizzle, of_64_bytes_permutes_four_chunks_and_repeats_after_512_bytes) {
  const auto mode = swizzle::bytes_64;
  EXPECT_EQ(swizzled(0x00, mode), 0x00u);
  EXPECT_EQ(swizzled(0x80, mode), 0x90u);
  EXPECT_EQ(swizzled(0x100, mode), 0x120u);
  EXPECT_EQ(swizzled(0x180, mode), 0x1b0u);
  EXPECT_EQ(swizzled(0x200, mode), 0x200u);
  EXPECT_EQ(swizzled(0x1f0, mode), 0x1c0u);
}

TEST(swizzle, of_32_bytes_swaps_two_chunks_in_every_other_line) {
  const auto mode = swizzle::bytes_32;
  EXPECT_EQ(swizzled(0x10, mode), 0x10u);
  EXPECT_EQ(swizzled(0x80, mode), 0x90u);
  EXPECT_EQ(swizzled(0x90, mode), 0x80u);
  EXPECT_EQ(swizzled(0xa0, mode), 0xb0u);
  EXPECT_EQ(swizzled(0x100, mode), 0x100u);
}

TEST(swizzle, keeps_bytes_within_a_chunk_and_is_its_own_inverse) {
  for (const auto mode : {swizzle::none, swizzle::bytes_32, swizzle::bytes_64, swizzle::bytes_128}) {
    for (std::uint64_t address = 0; address < 4096; ++address) {
      EXPECT_EQ(swizzled(swizzled(address, mode), mode), address);
      EXPECT_EQ(swizzled(address, mode) % 16, address % 16);
    }
  }
}

TEST(swizzle, of_a_tile_depends_on_the_absolute_address) {
  small_tensor<std::uint32_t> m{element_type::u32, {32, 8}, {32, 8}};
  m.spec.swizzle = swizzle::bytes_128;
  ASSERT_EQ(m.load({0, 0}), 1024u);
  EXPECT_EQ(m.tile[0], 1u);
  EXPECT_EQ(m.tile[32 + 4], 33u) << "row 1 begins in chunk 1";
  EXPECT_EQ(m.tile[3 * 32], 3u * 32 + 12 + 1) << "chunk 0 of row 3 holds its chunk 3";
  ASSERT_EQ(m.load({0, 0}, 256), 1024u);
  EXPECT_EQ(m.tile[8], 1u) << "256 bytes into the pattern row 0 begins in chunk 2";
}

TEST(swizzle, gives_a_narrow_row_a_whole_span) {
  small_tensor<std::uint32_t> m{element_type::u32, {32, 3}, {12, 3}};
  m.spec.swizzle = swizzle::bytes_128;
  ASSERT_EQ(m.load({0, 0}), 3u * 48) << "the barrier counts the bytes of the box only";
  EXPECT_EQ(m.tile[0], 1u);
  EXPECT_EQ(m.tile[12], 0xeeeeeeeeu);
  EXPECT_EQ(m.tile[32 + 4], 33u) << "row 1, 128 bytes on, in chunk 1";
  EXPECT_EQ(m.tile[32 + 12], 32u + 8 + 1) << "its chunk 2 is in chunk 3";
  EXPECT_EQ(m.tile[32 + 8], 0xeeeeeeeeu) << "chunk 2 is unchanged";
}

}  // namespace
}  // namespace tmap::testing
