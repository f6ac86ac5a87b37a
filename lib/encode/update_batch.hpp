// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>

#include "kernels/launch.hpp"

namespace tmap {

/// Encodes the maps of a batch that `target` names again. Plans and fails as `encode_batch` does,
/// but the caller checks the arguments: `run.statuses` must be null, and `source` must not be
/// `ragged_rows`.
[[nodiscard]] result<void> update_batch(const map_template& base, const tensor_source& source,
                                        const kernels::update_target& target, const encode_run& run,
                                        kernels::batch_totals* totals);

}  // namespace tmap
