// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/error.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap {

/// @file
/// Encodes through the CUDA driver, whose functions are found at run time. On a machine without a
/// driver the library loads, and calls fail with `status::no_driver`. Every function here is
/// thread-safe and synchronous, touches no device memory and enqueues nothing. Each validates its
/// spec first, and does not call the driver if a rule is broken. The limits are those of the
/// calling thread's current device, or without a GPU those that hold on every GPU. A thread without
/// a CUDA context gets its device's primary context, as at a first call of the CUDA runtime.
/// Source: CUDA driver API, "Tensor Map Object Management".

/// Makes a tiled map (cuTensorMapEncodeTiled).
/// @fails `rule_broken`, `driver_refused`, `no_context`, `earlier_asynchronous_error`, or the
/// reason why the driver cannot be called.
[[nodiscard]] TMAP_API result<tensor_map> encode(const tensor_spec& spec);

/// Makes an im2col map (cuTensorMapEncodeIm2col). Fails as the tiled form does.
[[nodiscard]] TMAP_API result<tensor_map> encode(const im2col_spec& spec);

/// Makes an im2col-wide map (cuTensorMapEncodeIm2colWide; driver 12.8, compute capability 10).
/// Fails as the tiled form does.
[[nodiscard]] TMAP_API result<tensor_map> encode(const im2col_wide_spec& spec);

/// Returns the same map with another address, which must be aligned as the map demands
/// (cuTensorMapReplaceAddress). Works for maps of every kind, on the host only.
[[nodiscard]] TMAP_API result<tensor_map> replace_address(const tensor_map& map, std::uint64_t global_address);

/// Returns the limits of the calling thread's current device.
/// @fails `no_driver` or `no_device`.
[[nodiscard]] TMAP_API result<device_limits> query_device_limits();

}  // namespace tmap
