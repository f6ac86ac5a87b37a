// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory with gigabytes of addresses that takes little physical memory.

#include <tmap/tensor_batch.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tmap::testing {

/// Reserves poisoned islands of memory around the requested places. The ranges in between map one
/// stretch of memory again and again: zeros for reads, or a sink for writes.
class far_memory {
 public:
  enum class sea { zeros, sink };
  static constexpr std::uint64_t page = 4096;
  static constexpr std::uint64_t shore = 16 * page;  ///< the bytes of an island before its place, and after it
  static constexpr std::byte poison{0xa5};

  far_memory(std::uint64_t bytes, const std::vector<std::uint64_t>& places, sea between)
      : bytes_(round_up(bytes + 2 * shore + page, stretch)) {
    void* const mapped = map(nullptr, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    begin_ = static_cast<std::byte*>(mapped);
    madvise(begin_, bytes_, MADV_HUGEPAGE);  // zeros are read faster if this succeeds, and are zeros if it fails
    if (between == sea::sink) map_sink();
    for (const std::uint64_t place : places) raise_island(place);
  }
  ~far_memory() {
    munmap(begin_, bytes_);
    if (file_ != -1) close(file_);
  }
  far_memory(const far_memory&) = delete;
  far_memory& operator=(const far_memory&) = delete;

  /// The address of place 0.
  std::byte* data() const { return begin_ + shore; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data()); }
  const std::vector<std::span<std::byte>>& islands() const { return islands_; }

 private:
  static constexpr std::uint64_t stretch = std::uint64_t{2} << 20;

  static std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

  void* map(std::byte* at, int protection, int flags, int file) const {
    void* const mapped = mmap(at, at == nullptr ? bytes_ : stretch, protection, flags, file, 0);
    EXPECT_NE(mapped, MAP_FAILED) << "of " << bytes_ << " bytes of addresses";
    return mapped;
  }
  void map_sink() {
    file_ = memfd_create("sink", 0);
    EXPECT_EQ(ftruncate(file_, stretch), 0);
    for (std::uint64_t at = 0; at < bytes_; at += stretch) {
      map(begin_ + at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file_);
    }
  }
  void raise_island(std::uint64_t place) {
    std::byte* const first = begin_ + place / page * page;
    const std::uint64_t size = 2 * shore + page;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    ASSERT_LE(static_cast<std::uint64_t>(first - begin_) + size, bytes_) << "island beyond the memory";
    ASSERT_NE(mmap(first, size, PROT_READ | PROT_WRITE, flags, -1, 0), MAP_FAILED);
    islands_.emplace_back(first, size);
    std::fill(islands_.back().begin(), islands_.back().end(), poison);
  }

  std::uint64_t bytes_;
  std::byte* begin_{};
  int file_{-1};
  std::vector<std::span<std::byte>> islands_;
};

inline constexpr std::uint64_t two_31 = std::uint64_t{1} << 31;
inline constexpr std::uint64_t two_32 = std::uint64_t{1} << 32;

inline std::byte noise_of(std::uint64_t i) {
  const std::uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15;
  return static_cast<std::byte>(bits >> 56);
}

/// Holds a batch of one tensor and its patch.
template <std::uint32_t Rank>
struct one_tensor {
  map_patch patch{};
  tensor_batch batch{};

  one_tensor(std::uint64_t address, std::uint32_t element_bytes, const std::uint64_t (&dim)[Rank],
             std::uint64_t pitch = 0) {
    patch.global_address = address;
    std::copy(dim, dim + Rank, patch.global_dim);
    patch.global_stride_bytes[0] = pitch;
    batch.tensors = patch_array{&patch};
    batch.count = 1;
    batch.element_bytes = element_bytes;
    batch.rank = Rank;
    batch.side = array_side::host;
  }
  one_tensor(const one_tensor&) = delete;
  one_tensor& operator=(const one_tensor&) = delete;
};

}  // namespace tmap::testing
