// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tmap::pool {

/// Reserves memory, so that `list` can grow to `count` elements without allocating.
template <class T>
void make_room(std::vector<T>& list, std::size_t count) {
  if (list.capacity() < count) list.reserve(std::max(count, 2 * list.capacity()));
}

}  // namespace tmap::pool
