// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/simulator.hpp>

#include <cuda/std/span>

#include <cstddef>
#include <cstdint>

namespace tmap::simulator {

/// Simulated memory as one address space. Windows that touch each other read as one piece. Remembers the window it
/// found last, so each copy makes its own view.
class memory_view {
 public:
  explicit memory_view(cuda::std::span<const memory_window> windows) : windows_{windows} {}

  /// The mapped bytes from `address` on, at most `wanted` of them; empty when nothing is mapped there.
  cuda::std::span<std::byte> at(std::uint64_t address, std::uint64_t wanted);

  /// `illegal_memory_access` with the first address missing.
  result<void> read(std::uint64_t address, std::byte* to, std::uint64_t count);
  result<void> write(std::uint64_t address, const std::byte* from, std::uint64_t count);

 private:
  bool holds(const memory_window& window, std::uint64_t address) const {
    return address >= window.base && address - window.base < window.data.size();
  }

  cuda::std::span<const memory_window> windows_;
  std::size_t last_{};
};

error unmapped(std::uint64_t address);

}  // namespace tmap::simulator
