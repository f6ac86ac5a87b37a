// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

// Runs cuBLAS on the same matrices. Unlike tmap, cuBLAS gets all sizes from the host.

namespace tmap::apps::bench {

/// One product C = A * B^T, or A^T * B if `sums_rows`, in bf16. Pitches count elements.
struct peer_product {
  const void* a;
  const void* b;
  void* c;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t a_pitch;
  std::int64_t b_pitch;
  std::int64_t c_pitch;
};

class cublas_peer {
 public:
  /// Returns false in a build without cuBLAS. Then no other member may be called.
  static bool exists();

  cublas_peer(std::vector<peer_product> products, bool sums_rows);
  ~cublas_peer();
  cublas_peer(const cublas_peer&) = delete;
  cublas_peer& operator=(const cublas_peer&) = delete;

  /// Calls cublasGemmEx once per product.
  void enqueue_loop(cudaStream_t stream) const;
  /// Calls cublasGemmGroupedBatchedEx once.
  void enqueue_grouped(cudaStream_t stream) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace tmap::apps::bench
