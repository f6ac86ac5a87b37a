// SPDX-License-Identifier: Apache-2.0
#pragma once

// How L2 is to treat the lines that a copy touches. A hint, never needed for the right bytes; it
// lives in a register and is made once, outside the loop that copies.

#include <tmap/detail/standard.hpp>
#include <tmap/device/ptx.cuh>

namespace tmap::device {

/// When L2 lets go of a line: `first` for what is read or written once, `last` for what all blocks
/// read again, `normal` neither, `unchanged` as the line was. `normal` is not the same as no hint:
/// loads of grouped products through maps were 1 to 5 % slower with it, and where memory was the
/// limit 20 % (docs/gemm_log.md, "L2 hints"). Measure.
enum class l2_eviction : std::uint32_t { normal, first, last, unchanged };

/// What the hinted loads and stores take: a policy of `createpolicy`, opaque. Made by
/// `make_cache_hint`. Trivially copyable.
class cache_hint {
 public:
  explicit __device__ cache_hint(std::uint64_t policy) : policy_(policy) {}
  __device__ std::uint64_t policy() const { return policy_; }

 private:
  std::uint64_t policy_;
};

namespace detail {

// As PTX spells them.
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

/// `Eviction` for a `fraction` (above 0, at most 1) of the lines, chosen by their addresses, and
/// `Rest` (`first` or `unchanged`) for the others.
template <l2_eviction Eviction, l2_eviction Rest = l2_eviction::unchanged>
__device__ cache_hint make_cache_hint(float fraction = 1.0f) {
  static_assert(Rest == l2_eviction::first || Rest == l2_eviction::unchanged);
  return cache_hint(
      ptx::createpolicy_fractional<detail::eviction_name<Eviction>, detail::eviction_name<Rest>>(fraction));
}

}  // namespace tmap::device
