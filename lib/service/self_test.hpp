// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <vector>

#include "lib/service/service_calls.hpp"

namespace tmap::service {

/// Legal specs that reach every rank, mode and limit between them.
std::vector<tensor_spec> golden_specs();

/// Encodes the golden specs by driver and by kernel, each from a driver's template and from a
/// zeroed one, and compares all 128 bytes. Waits for the device. Fails with `self_test_failed`
/// (`found` is the case, from 1 on, first those of the driver's templates, and `allowed` the number
/// of cases), or as a call.
[[nodiscard]] result<void> run_self_test(const service_calls& calls);

/// `run_self_test`, unless it has passed in this context before. Thread-safe: a second caller waits
/// for the first.
[[nodiscard]] result<void> pass_self_test(std::uint64_t context, const service_calls& calls);

}  // namespace tmap::service
