// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_batch.hpp>
#include <tmap/map_service.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "lib/service/service_core.hpp"

namespace tmap::service {

// The three ways to a batch; map_service.hpp says what each does. They throw for want of host memory only, and have
// then changed nothing.

template <class Source>
[[nodiscard]] result<map_batch> encode_batch(const std::shared_ptr<core>& service, const map_template& base,
                                             const Source& source, std::uint64_t count, cudaStream_t stream,
                                             const encode_request& request);

[[nodiscard]] result<map_batch> reserve_batch(const std::shared_ptr<core>& service, std::uint64_t count,
                                              cudaStream_t stream);

template <class Source>
[[nodiscard]] result<map_batch> update_batch(const std::shared_ptr<core>& service, const map_batch& batch,
                                             const changed_maps& changed, const map_template& base,
                                             const Source& source, cudaStream_t stream, const encode_request& request);

/// What the encoder is asked for; `header` is null unless the request wants one.
encode_options options_of(const encode_request& request, batch_totals* totals, batch_header* header);

/// Ref to the maps in the slots of `lent` from `first` on.
map_batch_ref ref_to(const lent_slots& lent, std::uint32_t first, std::uint32_t count, bool is_trusted);

}  // namespace tmap::service
