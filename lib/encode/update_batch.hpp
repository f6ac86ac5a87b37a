// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>
#include <tmap/error.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>

#include <cuda_runtime_api.h>

#include "kernels/launch.hpp"

namespace tmap {

// update_batch_async: encodes some maps of a batch again, where `target` says. Plans and fails as
// `encode_batch_async`, but leaves the arguments to its caller to check; `options.statuses` must be null.

[[nodiscard]] result<void> update_batch_async(const map_template& base, const patch_array& source,
                                              const kernels::update_target& target, cudaStream_t stream,
                                              const encode_options& options);
[[nodiscard]] result<void> update_batch_async(const map_template& base, const patch_columns& source,
                                              const kernels::update_target& target, cudaStream_t stream,
                                              const encode_options& options);
[[nodiscard]] result<void> update_batch_async(const map_template& base, const compact_columns& source,
                                              const kernels::update_target& target, cudaStream_t stream,
                                              const encode_options& options);

}  // namespace tmap
