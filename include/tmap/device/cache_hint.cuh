// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Hints on how L2 should treat the lines that a copy touches. A hint never changes a byte. It
/// lives in a register: make it once, outside the loop that copies.

#include <tmap/detail/standard.hpp>
#include <tmap/device/ptx.cuh>

namespace tmap::device {

/// When L2 evicts a line: `first` suits what is read or written once, `last` suits what all blocks
/// read again, `normal` is neither, and `unchanged` keeps the line's priority. `normal` differs
/// from no hint: it made loads of grouped products through maps 1 to 5 % slower, and 20 % slower
/// where memory was the limit (docs/measurements/gemm_log.md, "L2 hints"). Measure before you use
/// it.
enum class l2_eviction : std::uint32_t { normal, first, last, unchanged };

/// An opaque policy of `createpolicy`, made by `make_cache_hint` and taken by the hinted loads and
/// stores. Trivially copyable.
class cache_hint {
 public:
  explicit __device__ cache_hint(std::uint64_t policy) : policy_(policy) {}
  __device__ std::uint64_t policy() const { return policy_; }

 private:
  std::uint64_t policy_;
};

namespace detail {

// The names that PTX gives them.
template <l2_eviction>
struct eviction_name {
  static constexpr const char value[] = "evict_normal";
};
template <>
struct eviction_name<l2_eviction::first> {
  static constexpr const char value[] = "evict_first";
};
template <>
struct eviction_name<l2_eviction::last> {
  static constexpr const char value[] = "evict_last";
};
template <>
struct eviction_name<l2_eviction::unchanged> {
  static constexpr const char value[] = "evict_unchanged";
};

}  // namespace detail

/// Returns a hint of `Eviction` for a `fraction` (above 0, at most 1) of the lines, chosen by their
/// addresses, and of `Rest` (`first` or `unchanged`) for the others.
template <l2_eviction Eviction, l2_eviction Rest = l2_eviction::unchanged>
__device__ cache_hint make_cache_hint(float fraction = 1.0f) {
  static_assert(Rest == l2_eviction::first || Rest == l2_eviction::unchanged);
  return cache_hint(
      ptx::createpolicy_fractional<detail::eviction_name<Eviction>, detail::eviction_name<Rest>>(fraction));
}

}  // namespace tmap::device
