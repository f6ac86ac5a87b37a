// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_batch.hpp>
#include <tmap/map_service.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "lib/service/service_core.hpp"

namespace tmap::service {

// The three ways to make a batch, as map_service.hpp describes them. They throw only if host memory
// runs out, and have then changed nothing.

[[nodiscard]] result<map_batch> encode_batch(const std::shared_ptr<core>& service, const map_template& base,
                                             const tensor_source& source, std::uint64_t count, const encode_run& run);

[[nodiscard]] result<map_batch> reserve_batch(const std::shared_ptr<core>& service, std::uint64_t count,
                                              cudaStream_t stream);

[[nodiscard]] result<map_batch> update_batch(const std::shared_ptr<core>& service, const map_batch& batch,
                                             const changed_maps& changed, const map_template& base,
                                             const tensor_source& source, const encode_run& run);

/// Returns a ref to the maps in the slots of `lent`.
map_batch_ref ref_to(const lent_slots& lent, std::uint32_t count, bool is_trusted);

}  // namespace tmap::service
