// SPDX-License-Identifier: Apache-2.0
#include "lib/driver/map_driver.hpp"

#include <tmap/validate.hpp>

#include "lib/driver/raw_calls.hpp"
#include "lib/spec/rule_error.hpp"
#include "lib/support/check.hpp"
#include "lib/support/log.hpp"

namespace tmap::driver {
namespace {

/// Without a GPU, only rules that hold on every GPU are judged.
constexpr device_limits limits_of_any_gpu{~std::uint32_t{0}, ~std::uint32_t{0}};

/// INVALID_VALUE after our own validation means that the driver has a rule that we do not know.
error refusal(CUresult code, const violations& warnings) {
  if (code == CUDA_ERROR_INVALID_VALUE) {
    support::log(log_level::warning, "the driver refused a spec that breaks no rule tmap knows");
    error e = detail::error_of(status::driver_refused, warnings);
    e.cuda_code = code;
    return e;
  }
  error e = support::driver_error(code);
  const bool lacks_context = e.code == status::no_context;
  if (lacks_context || e.code == status::earlier_asynchronous_error) {
    e.first = lacks_context ? rule::t31_context_present : rule::t32_no_earlier_error;
    e.rules.insert(e.first);
  }
  return e;
}

}  // namespace

result<device_limits> map_driver::usable_limits() {
  result<device_limits> limits = devices_.current();
  if (!limits) return limits;
  if (const result<void> checked = require_copy_engine(*limits); !checked) return failure{checked.error()};
  return limits;
}

/// The driver needs a current context. Users of the runtime expect it to be made at the first call,
/// so make it here. cudaSetDevice does so without synchronising and is allowed while another thread
/// captures a graph.
template <class Call>
CUresult map_driver::call_with_context(const Call& call) const {
  const CUresult code = call();
  if (code != CUDA_ERROR_INVALID_CONTEXT && code != CUDA_ERROR_NOT_INITIALIZED) return code;
  int device = -1;
  if (calls_.current_device(&device) != cudaSuccess || device < 0) return code;
  if (const cudaError_t made = calls_.set_device(device); made != cudaSuccess) {
    support::clear_last_error(made);
    return code;
  }
  support::log(log_level::debug, "made the device's primary context current for an encode call");
  return call();
}

template <class Spec, class Function>
result<tensor_map> map_driver::encode_with(const Spec& spec, result<Function> (entry_points::*find)()) {
  const result<device_limits> limits = usable_limits();
  if (!broken_rules(spec, limits.value_or(limits_of_any_gpu)).empty()) {
    return failure{detail::error_of(status::rule_broken, validate(spec, limits.value_or(limits_of_any_gpu)))};
  }
  if (!limits) return failure{limits.error()};
  const result<Function> function = (entry_points_.*find)();
  if (!function) return failure{function.error()};
  tensor_map map;
  const CUresult code = call_with_context([&] { return raw_encode(*function, spec, map); });
  if (code != CUDA_SUCCESS) return failure{refusal(code, validate(spec, *limits))};
  return map;
}

result<tensor_map> map_driver::encode(const tensor_spec& spec) {
  return encode_with(spec, &entry_points::encode_tiled);
}

result<tensor_map> map_driver::encode(const im2col_spec& spec) {
  return encode_with(spec, &entry_points::encode_im2col);
}

result<tensor_map> map_driver::encode(const im2col_wide_spec& spec) {
  return encode_with(spec, &entry_points::encode_im2col_wide);
}

result<tensor_map> map_driver::replace_address(const tensor_map& map, std::uint64_t global_address) {
  violations found;
  const auto report = [&](rule id, std::int32_t axis, std::uint64_t value, std::uint64_t allowed) {
    found.add({id, axis, value, allowed});
  };
  detail::check_address({.global_address = global_address}, report);
  if (!found.empty()) return failure{detail::error_of(status::rule_broken, found)};
  if (const result<device_limits> limits = usable_limits(); !limits) return failure{limits.error()};
  const result<replace_address_function> function = entry_points_.replace_address();
  if (!function) return failure{function.error()};
  tensor_map moved = map;
  const CUresult code = call_with_context([&] { return raw_replace_address(*function, moved, global_address); });
  if (code != CUDA_SUCCESS) return failure{refusal(code, {})};
  return moved;
}

}  // namespace tmap::driver
