// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Kernels count bad and empty items by these functions: for all calls in a record (bad_items.hpp),
/// and for one call in its header. Good items never reach this code.

#include <tmap/bad_items.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/item_status.hpp>

#include <cuda/ptx>

namespace tmap::device {

namespace detail {

/// Adds to the count first, so that a reader of the count finds the first item named, or about to
/// be named.
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

/// Counts the lanes that have bits, each a bad item. If they are the first ones of the record, the
/// lowest of these lanes names its item there. That is the lowest of 32 items, not of the batch.
/// All lanes of a warp call it together, converged.
__device__ inline void report_bad(const fault_sink& to, item_kind kind, std::uint64_t index, std::uint64_t bits) {
  const std::uint32_t bad = __ballot_sync(~0u, bits != 0);
  if (to.record == nullptr || bits == 0 || (bad & cuda::ptx::get_sreg_lanemask_lt()) != 0) return;
  detail::count_bad(to, kind, static_cast<std::uint32_t>(__popc(bad)), index, bits);
}

/// Returns, in each lane, the counts of the warp's items. `number` is an item's index as a header
/// holds it. Lanes without an item pass a good status. All lanes of a warp call it together,
/// converged.
template <class Status>
__device__ batch_header tally_items(std::uint32_t number, Status status) {
  const std::uint32_t bad = __ballot_sync(~0u, status.is_bad());
  const std::uint32_t empty = __ballot_sync(~0u, status.is_empty());
  batch_header items;
  items.bad_count = static_cast<std::uint32_t>(__popc(bad));
  items.first_bad = __reduce_min_sync(~0u, status.is_bad() ? number : items.first_bad);
  items.empty_count = static_cast<std::uint32_t>(__popc(empty));
  return items;
}

/// Adds the counts of some items to a header in global or shared memory. Others may add to it at
/// the same time. One thread calls it. `Header` has the members of a `batch_header`.
template <class Header>
__device__ void add_to_header(Header& header, const batch_header& items) {
  if (items.empty_count != 0) atomicAdd(&header.empty_count, items.empty_count);
  if (items.bad_count == 0) return;
  atomicAdd(&header.bad_count, items.bad_count);
  atomicMin(&header.first_bad, items.first_bad);
}

}  // namespace tmap::device
