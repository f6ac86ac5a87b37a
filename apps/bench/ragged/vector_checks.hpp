// SPDX-License-Identifier: Apache-2.0
#pragma once

// Results of operations that compute, element after element by plain kernels. Each counts the
// elements that are wrong.

#include <cstdint>

#include "apps/bench/ragged/ragged_batch.hpp"

namespace tmap::apps::bench {

/// y held floats of series `y_series` (`fill_with_floats`) before.
std::uint64_t count_wrong_saxpy(const device_batch& x, const device_batch& y, float a, std::uint32_t y_series);
std::uint64_t count_wrong_max_pool(const device_batch& x, const device_batch& y, std::uint32_t radius);
std::uint64_t count_wrong_bf16(const device_batch& wide, const device_batch& narrow);
/// Within 2^-17 of the sum of magnitudes: the order of additions is the operation's own.
std::uint64_t count_wrong_sums(const device_batch& source, const device_batch& sums);

}  // namespace tmap::apps::bench
