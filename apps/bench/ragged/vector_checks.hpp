// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks the results of operations that compute, element by element with plain kernels. Each
// function returns the number of wrong elements.

#include <cstdint>

#include "apps/bench/ragged/ragged_batch.hpp"

namespace tmap::apps::bench {

/// Expects that y held floats of series `y_series` (`fill_with_floats`) before.
std::uint64_t count_wrong_saxpy(const device_batch& x, const device_batch& y, float a, std::uint32_t y_series);
std::uint64_t count_wrong_max_pool(const device_batch& x, const device_batch& y, std::uint32_t radius);
std::uint64_t count_wrong_bf16(const device_batch& wide, const device_batch& narrow);
/// Allows an error of 2^-17 of the sum of magnitudes, because the operation chooses the order of
/// additions.
std::uint64_t count_wrong_sums(const device_batch& source, const device_batch& sums);

}  // namespace tmap::apps::bench
