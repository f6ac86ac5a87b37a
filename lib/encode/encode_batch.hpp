// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>

#include <cuda_runtime_api.h>

namespace tmap {

/// `encode_batch_async` for another public call, which bad maps are counted for. Of each patch source.
template <class Source>
[[nodiscard]] result<void> encode_batch(batch_call which, const map_template& base, const Source& source,
                                        tensor_map* slots, std::uint64_t count, cudaStream_t stream,
                                        const encode_options& options);

}  // namespace tmap
