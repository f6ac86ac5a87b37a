// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/simulator/ranks/explore.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"

// Pieces of which the programs of model_litmus_*test.cpp are made.

namespace tmap::testing::litmus {

using ranks::model_link;
using ranks::never;
using ranks::program;

// Offsets in windows and in shared memory.
inline constexpr std::uint64_t flag = 0, credit = 16, data = 32;
inline constexpr std::uint32_t staging = 0;
inline constexpr std::uint32_t piece_bytes = 16;

/// Makes a program of one thread for each body: (rank, block, body).
inline program of(std::uint32_t rank_count, std::vector<program::thread> threads) {
  program made;
  made.ranks = rank_count;
  made.threads = std::move(threads);
  return made;
}

/// Fills a piece of shared memory as the copy engine will read it.
template <class Link>
void stage(Link& link, std::uint32_t value) {
  for (std::uint32_t i = 0; i < piece_bytes; i += 4) link.store_shared(staging + i, value + i);
  link.proxy_fence();
}

template <class Link>
void expect_piece(Link& link, std::uint32_t value) {
  for (std::uint32_t i = 0; i < piece_bytes; i += 4)
    link.expect(link.load(link.rank(), data + i) == value + i, "the piece is whole");
}

}  // namespace tmap::testing::litmus
