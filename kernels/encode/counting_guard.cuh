// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/launch.hpp"

#include <tmap/device/map_guard.cuh>
#include <tmap/device/patch_source.cuh>

#include <cuda/atomic>

namespace tmap::kernels {

/// A guard that also adds to the totals that a service counts.
struct counting_guard : device::map_guard {
  batch_totals* totals;

  __device__ counting_guard(const device::guard_page& page, map_status* statuses, const encode_terms& terms,
                            const fault_sink& faults)
      : device::map_guard{&page, statuses, terms.header, terms.windows, terms.window_count, terms.trusted, faults},
        totals(terms.totals) {}

  __device__ void report(std::uint64_t index, bool has_map, map_status status) const {
    report_to(*this, index, has_map, status);
  }

  __device__ void count(const batch_header& maps) const {
    if (totals != nullptr) {
      if (maps.bad_count != 0) add(totals->bad_maps, maps.bad_count);
      if (maps.empty_count != 0) add(totals->empty_maps, maps.empty_count);
    }
    device::map_guard::count(maps);
  }

 private:
  static __device__ void add(std::uint64_t& total, std::uint32_t count) {
    cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(total).fetch_add(count, cuda::memory_order_relaxed);
  }
};

template <class Source>
__device__ const encode_terms& terms_for(const encode_terms& terms, const Source&) {
  return terms;
}

/// Maps of peers are judged by the windows of the peers, which are parameters of the kernel.
template <class Reader>
__device__ encode_terms terms_for(const encode_terms& terms, const device::peer_reader<Reader>& source) {
  encode_terms judged = terms;
  judged.windows = source.windows();
  judged.window_count = source.window_count();
  return judged;
}

}  // namespace tmap::kernels
