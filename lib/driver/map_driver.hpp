// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include "lib/driver/device_query.hpp"
#include "lib/driver/entry_points.hpp"

namespace tmap::driver {

/// Implements encode.hpp over any set of runtime calls. Thread-safe.
class map_driver {
 public:
  explicit map_driver(const runtime_calls& calls) : calls_{calls}, entry_points_{calls}, devices_{calls} {}

  [[nodiscard]] result<tensor_map> encode(const tensor_spec& spec);
  [[nodiscard]] result<tensor_map> encode(const im2col_spec& spec);
  [[nodiscard]] result<tensor_map> encode(const im2col_wide_spec& spec);
  [[nodiscard]] result<tensor_map> replace_address(const tensor_map& map, std::uint64_t global_address);
  [[nodiscard]] result<device_limits> query_limits() { return devices_.current(); }
  /// Returns the same, but fails with `compute_capability_too_low` on a GPU without tensor maps.
  [[nodiscard]] result<device_limits> usable_limits();

  /// Returns the driver's functions.
  entry_points& functions() { return entry_points_; }

 private:
  template <class Spec, class Function>
  [[nodiscard]] result<tensor_map> encode_with(const Spec& spec, result<Function> (entry_points::*find)());
  template <class Call>
  CUresult call_with_context(const Call& call) const;

  const runtime_calls& calls_;
  entry_points entry_points_;
  device_query devices_;
};

/// Returns the driver of this process, over the real runtime.
map_driver& process_driver();

}  // namespace tmap::driver
