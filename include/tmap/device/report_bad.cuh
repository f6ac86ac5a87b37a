// SPDX-License-Identifier: Apache-2.0
#pragma once

// How kernels count bad items (bad_items.hpp). Code that good items never reach.

#include <tmap/bad_items.hpp>
#include <tmap/detail/standard.hpp>

#include <cuda/ptx>

namespace tmap::device {

namespace detail {

/// Adds to the count first: a reader of the count finds the first item named, or being named.
__device__ inline void count_bad(const fault_sink& to, item_kind kind, std::uint32_t count, std::uint64_t index,
                                 std::uint64_t bits) {
  using word = unsigned long long;
  constexpr auto open = static_cast<word>(fault_record::claim::open);
  constexpr auto taken = static_cast<word>(fault_record::claim::taken);
  constexpr auto written = static_cast<word>(fault_record::claim::written);
  fault_record& record = *to.record;
  auto* const first = reinterpret_cast<word*>(&record.first);
  atomicAdd(reinterpret_cast<word*>(&record.counts[static_cast<std::uint32_t>(kind)]), word{count});
  __threadfence();
  if (*static_cast<volatile word*>(first) != open || atomicCAS(first, open, taken) != open) return;
  record.call = to.call;
  record.index = index;
  record.bits = bits;
  __threadfence();
  atomicExch(first, written);
}

}  // namespace detail

/// Counts the lanes that have bits, each a bad item. If they are the first ones of the record, the lowest lane of them
/// names its item there: the lowest of these 32, not of the batch. All lanes of a warp together, converged.
__device__ inline void report_bad(const fault_sink& to, item_kind kind, std::uint64_t index, std::uint64_t bits) {
  const std::uint32_t bad = __ballot_sync(~0u, bits != 0);
  if (to.record == nullptr || bits == 0 || (bad & cuda::ptx::get_sreg_lanemask_lt()) != 0) return;
  detail::count_bad(to, kind, static_cast<std::uint32_t>(__popc(bad)), index, bits);
}

}  // namespace tmap::device
