// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/memory_view.hpp"

#include <algorithm>
#include <cstring>

namespace tmap::simulator {

error unmapped(std::uint64_t address) {
  return {.code = status::illegal_memory_access, .found = address};
}

cuda::std::span<std::byte> memory_view::at(std::uint64_t address, std::uint64_t wanted) {
  if (last_ >= windows_.size() || !holds(windows_[last_], address)) {
    for (last_ = 0; last_ < windows_.size() && !holds(windows_[last_], address);) ++last_;
    if (last_ == windows_.size()) return {};
  }
  const memory_window& window = windows_[last_];
  const std::uint64_t offset = address - window.base;
  return window.data.subspan(offset, std::min<std::uint64_t>(wanted, window.data.size() - offset));
}

result<void> memory_view::read(std::uint64_t address, std::byte* to, std::uint64_t count) {
  while (count != 0) {
    const auto piece = at(address, count);
    if (piece.empty()) return failure{unmapped(address)};
    std::memcpy(to, piece.data(), piece.size());
    address += piece.size();
    to += piece.size();
    count -= piece.size();
  }
  return {};
}

result<void> memory_view::write(std::uint64_t address, const std::byte* from, std::uint64_t count) {
  while (count != 0) {
    const auto piece = at(address, count);
    if (piece.empty()) return failure{unmapped(address)};
    std::memcpy(piece.data(), from, piece.size());
    address += piece.size();
    from += piece.size();
    count -= piece.size();
  }
  return {};
}

}  // namespace tmap::simulator
