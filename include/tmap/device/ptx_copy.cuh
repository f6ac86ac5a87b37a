// SPDX-License-Identifier: Apache-2.0
#pragma once

// The copy engine's instructions that cuda::ptx of CUDA 13.0 lacks: those with an L2 cache hint,
// prefetches, and loads through im2col maps. Shared addresses are those of this block.

#include <tmap/detail/standard.hpp>
#include <tmap/tensor_map.hpp>

namespace tmap::device::ptx {

namespace detail {

__device__ inline std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

}  // namespace detail

// cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint
//     [dst], [src], bytes, [barrier], policy;                     PTX ISA 9.7.9.25.4.1, sm_90
__device__ inline void cp_async_bulk(void* shared, const void* global, std::uint32_t bytes, std::uint64_t* barrier,
                                     std::uint64_t policy) {
  asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
               :
               : "r"(detail::shared_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(bytes),
                 "r"(detail::shared_address(barrier)), "l"(policy)
               : "memory");
}

// cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint
//     [dst], [src], bytes, policy;                                PTX ISA 9.7.9.25.4.1, sm_90
__device__ inline void cp_async_bulk(void* global, const void* shared, std::uint32_t bytes, std::uint64_t policy) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;"
               :
               : "l"(__cvta_generic_to_global(global)), "r"(detail::shared_address(shared)), "r"(bytes), "l"(policy)
               : "memory");
}

// cp.async.bulk.prefetch.L2.global [src], bytes;                  PTX ISA 9.7.9.25.4.3, sm_90
__device__ inline void cp_async_bulk_prefetch(const void* global, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(global)), "r"(bytes)
               : "memory");
}

// cp.async.bulk.tensor.{1..5}d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
//     [dst], [map, {at}], [barrier], policy;                      PTX ISA 9.7.9.27.1.2, sm_90
template <std::uint32_t Rank>
__device__ void cp_async_bulk_tensor(void* shared, const tensor_map* map, const std::int32_t (&at)[Rank],
                                     std::uint64_t* barrier, std::uint64_t policy) {
  const std::uint32_t to = detail::shared_address(shared);
  const std::uint32_t on = detail::shared_address(barrier);
  if constexpr (Rank == 1) {
    asm volatile(
        "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%4}], "
        "[%2], %3;"
        :
        : "r"(to), "l"(map), "r"(on), "l"(policy), "r"(at[0])
        : "memory");
  } else if constexpr (Rank == 2) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%4, "
        "%5}], [%2], %3;"
        :
        : "r"(to), "l"(map), "r"(on), "l"(policy), "r"(at[0]), "r"(at[1])
        : "memory");
  } else if constexpr (Rank == 3) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%4, "
        "%5, %6}], [%2], %3;"
        :
        : "r"(to), "l"(map), "r"(on), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
  } else if constexpr (Rank == 4) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%4, "
        "%5, %6, %7}], [%2], %3;"
        :
        : "r"(to), "l"(map), "r"(on), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%4, "
        "%5, %6, %7, %8}], [%2], %3;"
        :
        : "r"(to), "l"(map), "r"(on), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
  }
}

// cp.async.bulk.tensor.{1..5}d.global.shared::cta.tile.bulk_group.L2::cache_hint
//     [map, {at}], [src], policy;                                 PTX ISA 9.7.9.27.1.2, sm_90
template <std::uint32_t Rank>
__device__ void cp_async_bulk_tensor(const tensor_map* map, const std::int32_t (&at)[Rank], const void* shared,
                                     std::uint64_t policy) {
  const std::uint32_t from = detail::shared_address(shared);
  if constexpr (Rank == 1) {
    asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%3}], [%1], %2;"
                 :
                 : "l"(map), "r"(from), "l"(policy), "r"(at[0])
                 : "memory");
  } else if constexpr (Rank == 2) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%3, %4}], [%1], %2;"
                 :
                 : "l"(map), "r"(from), "l"(policy), "r"(at[0]), "r"(at[1])
                 : "memory");
  } else if constexpr (Rank == 3) {
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%3, %4, %5}], [%1], %2;"
        :
        : "l"(map), "r"(from), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
  } else if constexpr (Rank == 4) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%3, %4, %5, %6}], [%1], %2;"
        :
        : "l"(map), "r"(from), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%3, %4, %5, %6, %7}], [%1], "
        "%2;"
        :
        : "l"(map), "r"(from), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
  }
}

// cp.async.bulk.prefetch.tensor.{1..5}d.L2.global.tile [map, {at}];  PTX ISA 9.7.9.27.1.4, sm_90
template <std::uint32_t Rank>
__device__ void cp_async_bulk_prefetch_tensor(const tensor_map* map, const std::int32_t (&at)[Rank]) {
  if constexpr (Rank == 1) {
    asm volatile("cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%0, {%1}];" : : "l"(map), "r"(at[0]) : "memory");
  } else if constexpr (Rank == 2) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];"
                 :
                 : "l"(map), "r"(at[0]), "r"(at[1])
                 : "memory");
  } else if constexpr (Rank == 3) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];"
                 :
                 : "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2])
                 : "memory");
  } else if constexpr (Rank == 4) {
    asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];"
                 :
                 : "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
                 : "memory");
  } else {
    asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0, {%1, %2, %3, %4, %5}];"
                 :
                 : "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
                 : "memory");
  }
}

// cp.async.bulk.tensor.{3..5}d.shared::cta.global.im2col.mbarrier::complete_tx::bytes
//     [dst], [map, {at}], [barrier], {offsets};                   PTX ISA 9.7.9.27.1.2, sm_90
template <std::uint32_t Rank>
__device__ void cp_async_bulk_tensor_im2col(void* shared, const tensor_map* map, const std::int32_t (&at)[Rank],
                                            const std::uint16_t (&offsets)[Rank - 2], std::uint64_t* barrier) {
  const std::uint32_t to = detail::shared_address(shared);
  const std::uint32_t on = detail::shared_address(barrier);
  if constexpr (Rank == 3) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
        "[%2], {%6};"
        :
        : "r"(to), "l"(map), "r"(on), "r"(at[0]), "r"(at[1]), "r"(at[2]), "h"(offsets[0])
        : "memory");
  } else if constexpr (Rank == 4) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
        "[%2], {%7, %8};"
        :
        : "r"(to), "l"(map), "r"(on), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "h"(offsets[0]), "h"(offsets[1])
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, "
        "%7}], [%2], {%8, %9, %10};"
        :
        : "r"(to), "l"(map), "r"(on), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]), "h"(offsets[0]),
          "h"(offsets[1]), "h"(offsets[2])
        : "memory");
  }
}

}  // namespace tmap::device::ptx
