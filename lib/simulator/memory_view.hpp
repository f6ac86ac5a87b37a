// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/simulator.hpp>

#include <cuda/std/span>

#include <cstddef>
#include <cstdint>

namespace tmap::simulator {

/// Simulated memory as one address space. Windows that touch each other read as one piece.
/// Remembers the window it found last, so each copy makes its own view.
class memory_view {
 public:
  explicit memory_view(cuda::std::span<const memory_window> windows) : windows_{windows} {}

  /// Returns the mapped bytes from `address` on, at most `wanted` of them. The span is empty if
  /// nothing is mapped there.
  cuda::std::span<std::byte> at(std::uint64_t address, std::uint64_t wanted) {
    if (last_ >= windows_.size() || !holds(windows_[last_], address)) find(address);
    if (last_ == windows_.size()) return {};
    const memory_window& window = windows_[last_];
    const std::uint64_t offset = address - window.base;
    const std::uint64_t room = window.data.size() - offset;
    return {window.data.data() + offset, wanted < room ? wanted : room};
  }

  /// Return false if a byte is not mapped; `missing` is its address then.
  bool read(std::uint64_t address, std::byte* to, std::uint64_t count);
  bool write(std::uint64_t address, const std::byte* from, std::uint64_t count);

  /// Calls use(memory, offset, bytes) for each piece. Pieces are whole multiples of `grain` bytes.
  template <class Use>
  bool for_each_piece(std::uint64_t address, std::uint64_t count, std::uint64_t grain, Use&& use) {
    for (std::uint64_t done = 0; done < count;) {
      const auto piece = at(address + done, count - done);
      const std::uint64_t whole = piece.size() / grain * grain;
      if (whole == 0) {
        missing_ = address + done;
        return false;
      }
      use(piece.data(), done, whole);
      done += whole;
    }
    return true;
  }

  std::uint64_t missing() const { return missing_; }

 private:
  static bool holds(const memory_window& window, std::uint64_t address) {
    return address >= window.base && address - window.base < window.data.size();
  }
  void find(std::uint64_t address);

  cuda::std::span<const memory_window> windows_;
  std::size_t last_{};
  std::uint64_t missing_{};
};

error unmapped(std::uint64_t address);

}  // namespace tmap::simulator
