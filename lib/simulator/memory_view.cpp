// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/memory_view.hpp"

#include <cstring>

namespace tmap::simulator {

error unmapped(std::uint64_t address) {
  return {.code = status::illegal_memory_access,
          .found = address,
          .argument = "memory",
          .reason = "has no byte at {found:#x}: the copy engine would raise an illegal memory access"};
}

void memory_view::find(std::uint64_t address) {
  for (last_ = 0; last_ < windows_.size() && !holds(windows_[last_], address);) ++last_;
}

bool memory_view::read(std::uint64_t address, std::byte* to, std::uint64_t count) {
  return for_each_piece(address, count, 1, [to](const std::byte* memory, std::uint64_t offset, std::uint64_t bytes) {
    std::memcpy(to + offset, memory, bytes);
  });
}

bool memory_view::write(std::uint64_t address, const std::byte* from, std::uint64_t count) {
  return for_each_piece(address, count, 1, [from](std::byte* memory, std::uint64_t offset, std::uint64_t bytes) {
    std::memcpy(memory, from + offset, bytes);
  });
}

}  // namespace tmap::simulator
