// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda/stream_ref>

namespace tmap::testing {

/// Names the default stream for calls that need no stream of their own.
inline const cuda::stream_ref no_stream{cudaStream_t{}};

}  // namespace tmap::testing
