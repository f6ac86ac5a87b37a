// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/rule.hpp>

namespace tmap {

namespace detail {

/// A fault's enumerator is a bit of the status; a rule's enumerator is the number of a bit.
template <class Fault>
struct status_bits {
  using word = std::uint32_t;
  TMAP_HOST_DEVICE static constexpr word of(Fault fault) { return static_cast<word>(fault); }
};

template <>
struct status_bits<rule> {
  using word = std::uint64_t;
  TMAP_HOST_DEVICE static constexpr word of(rule id) { return word{1} << static_cast<word>(id); }
};

}  // namespace detail

/// The status of one item of a batch: of a map (`map_status`), a tensor or row
/// (`ragged::tensor_status`), or a group (`gemm::group_status`). A good item has no bit. An empty
/// item has `empty_bit` alone and is no error. A bad item has the bits of its faults. Kernels write
/// statuses to device memory; no host call waits for them.
template <class Fault>
struct item_status {
  using word = typename detail::status_bits<Fault>::word;

  /// The highest bit: 63 of a map, else 31.
  static constexpr word empty_bit = word{1} << (8 * sizeof(word) - 1);

  word bits{};

  TMAP_HOST_DEVICE constexpr bool is_good() const { return bits == 0; }
  TMAP_HOST_DEVICE constexpr bool is_empty() const { return bits == empty_bit; }
  TMAP_HOST_DEVICE constexpr bool is_bad() const { return !is_good() && !is_empty(); }
  TMAP_HOST_DEVICE constexpr bool has(Fault fault) const { return (bits & detail::status_bits<Fault>::of(fault)) != 0; }

  friend TMAP_HOST_DEVICE constexpr bool operator==(item_status a, item_status b) { return a.bits == b.bits; }
  friend TMAP_HOST_DEVICE constexpr bool operator!=(item_status a, item_status b) { return a.bits != b.bits; }
};

/// `batch_header::first_bad` of a batch without a bad item.
inline constexpr std::uint32_t no_bad_item = ~std::uint32_t{0};

/// The summary of a whole batch.
struct alignas(16) batch_header {
  std::uint32_t bad_count{};
  std::uint32_t first_bad{no_bad_item};  ///< the lowest index of a bad item
  std::uint32_t empty_count{};
  std::uint32_t reserved{};
};

/// A range of addresses that an item may reach, such as an allocation: from `begin` up to, but not
/// including, `end`.
struct alignas(16) address_window {
  std::uint64_t begin{};
  std::uint64_t end{};
};

}  // namespace tmap
