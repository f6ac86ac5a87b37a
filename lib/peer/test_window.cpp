// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/test_window.hpp"

#include <tmap/peer_exchange.hpp>

#include <cuda_runtime_api.h>

#include "lib/support/check.hpp"

namespace tmap::peer {
namespace {

/// Returns how a call of all ranks ended on this one.
template <class Call>
result<void> outcome_of_call(const Call& call, const peer_memory& window, cudaStream_t stream,
                             std::chrono::milliseconds patience) {
  const cuda::stream_ref in{stream};
  if (const result<void> launched = call(window, in, patience); !launched) return launched;
  return last_outcome(window, in);
}

}  // namespace

result<void> test_window(const peer_memory& window, std::chrono::milliseconds patience) {
  cudaStream_t stream{};
  TMAP_TRY_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const result<void> tested = outcome_of_call(self_test_async, window, stream, patience);
  // Wrong bytes break no group. Other ranks use the window until they have come here.
  const result<void> met = outcome_of_call(barrier_async, window, stream, patience);
  const cudaError_t closed = cudaStreamDestroy(stream);
  if (!tested) return tested;
  if (!met) return met;
  TMAP_TRY_CUDA(closed);
  return {};
}

}  // namespace tmap::peer
