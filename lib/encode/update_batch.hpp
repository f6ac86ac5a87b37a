// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>

#include "kernels/launch.hpp"

namespace tmap {

/// Encodes some maps of a batch again, where `target` says. Plans and fails as `encode_batch`, but
/// leaves the arguments to its caller to check; `run.statuses` must be null, and `source` must not
/// be `ragged_rows`.
[[nodiscard]] result<void> update_batch(const map_template& base, const tensor_source& source,
                                        const kernels::update_target& target, const encode_run& run,
                                        kernels::batch_totals* totals);

}  // namespace tmap
