// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <vector>

#include "lib/service/service_calls.hpp"

namespace tmap::service {

/// Returns legal specs that together cover every rank, mode and limit.
std::vector<tensor_spec> golden_specs();

/// Encodes the golden specs by driver and by kernel, each from a driver's template and from a
/// zeroed one, and compares all 128 bytes. Waits for the device. Fails with `self_test_failed`, or
/// as a CUDA call. `found` is the number of the case, from 1 on, with the driver's templates first,
/// and `allowed` is the number of cases.
[[nodiscard]] result<void> run_self_test(const service_calls& calls);

/// Calls `run_self_test`, unless it has passed in this context before. Thread-safe: a second caller
/// waits for the first.
[[nodiscard]] result<void> pass_self_test(std::uint64_t context, const service_calls& calls);

}  // namespace tmap::service
