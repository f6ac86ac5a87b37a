// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

/// @file
/// Holds every fact about GPUs that the code needs; cmake/architectures.cmake names the GPUs that
/// kernels are built for. Only compute capability 9.0 was measured. Facts about others are
/// documented only.

namespace tmap {

/// The limits of a GPU that rules depend on. A plain value: fill it by hand to ask about a GPU that
/// this machine lacks, or call `query_device_limits` (encode.hpp).
struct device_limits {
  std::uint32_t compute_capability{90};       ///< 10 * major + minor
  std::uint32_t shared_memory_bytes{232448};  ///< most shared memory one block can opt in to
};

/// Returns the limits of an H100, H200 or GH200.
TMAP_HOST_DEVICE constexpr device_limits hopper_limits() {
  return {90, 232448};
}

/// Returns the limits of a B200, the first with what Blackwell adds to tensor maps: 4- and 6-bit
/// types, swizzles with larger atoms, im2col-wide.
TMAP_HOST_DEVICE constexpr device_limits blackwell_limits() {
  return {100, 232448};
}

/// The first compute capability with a copy engine, and so with tensor maps.
inline constexpr std::uint32_t first_compute_capability = 90;

namespace detail {

/// The first with what Blackwell adds to tensor maps.
inline constexpr std::uint32_t packed_type_compute_capability = blackwell_limits().compute_capability;
/// The last on which, by CUDA's guide, a map may begin as 128 zero bytes.
inline constexpr std::uint32_t last_zeroed_compute_capability = 90;
/// The only compute capability with the instructions of grouped products.
inline constexpr std::uint32_t product_compute_capability = 90;
/// The shared memory that a block of a ragged operation may take. Compute capability 12 has less.
inline constexpr std::uint32_t ragged_shared_memory_bytes = hopper_limits().shared_memory_bytes;
/// The multiprocessors of an H100 or H200, for sizes that are set without asking the GPU.
inline constexpr std::uint32_t hopper_multiprocessors = 132;
/// The size from which Blackwell's driver marks a tensor as large (`decoded_map::large_tensor`).
inline constexpr std::uint64_t large_tensor_bytes = 128 * 1024;

}  // namespace detail
}  // namespace tmap
