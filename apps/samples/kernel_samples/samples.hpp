// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small kernels, one file for each feature of the device headers (docs/toolkit.md). Each function
// runs its kernel on the current device and returns whether the result is right. main.cpp lists
// them all.

#include <cstdint>
#include <vector>

#include "apps/support/device_array.hpp"

namespace samples {

using tmap::apps::device_array;

bool bulk_copy();
bool bulk_reduce();
bool cache_hints();
bool cluster_queue();
bool copy_async();
bool im2col();
bool send_to_block();
bool stage_ring();
bool store_to_block();
bool tile_load_store();
bool tile_multicast();
bool tile_prefetch();
bool tile_reduce();
bool tile_transpose();
bool work_queue();

/// Returns first, first + 1, ...
template <class T>
std::vector<T> counting(std::size_t count, T first = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(first + static_cast<T>(i));
  return values;
}

}  // namespace samples
