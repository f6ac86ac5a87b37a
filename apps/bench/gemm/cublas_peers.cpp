// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/gemm/peers.hpp"

#include <cublas_v2.h>

#include <source_location>
#include <utility>

#include "apps/support/device_array.hpp"
#include "apps/support/require.hpp"

// cuBLAS is column-major: it computes the row-major C = A * B^T as C^T = B * A^T, with the operands
// exchanged.

namespace tmap::apps::bench {
namespace {

void require(cublasStatus_t code, const std::source_location& at = std::source_location::current()) {
  if (code != CUBLAS_STATUS_SUCCESS) fail(cublasGetStatusString(code), at);
}

/// Holds the arguments of one grouped call: host arrays, and device arrays of addresses.
struct grouped_arguments {
  std::vector<cublasOperation_t> first_operations, second_operations;
  std::vector<int> m, n, k, first_pitches, second_pitches, c_pitches, sizes;
  std::vector<float> alpha, beta;
  std::vector<const void*> first, second;
  std::vector<void*> c;
};

grouped_arguments arguments_of(const std::vector<peer_product>& products, bool sums_rows) {
  grouped_arguments all;
  for (const peer_product& product : products) {
    all.first_operations.push_back(sums_rows ? CUBLAS_OP_N : CUBLAS_OP_T);
    all.second_operations.push_back(sums_rows ? CUBLAS_OP_T : CUBLAS_OP_N);
    all.m.push_back(static_cast<int>(product.n));
    all.n.push_back(static_cast<int>(product.m));
    all.k.push_back(static_cast<int>(product.k));
    all.first_pitches.push_back(static_cast<int>(product.b_pitch));
    all.second_pitches.push_back(static_cast<int>(product.a_pitch));
    all.c_pitches.push_back(static_cast<int>(product.c_pitch));
    all.first.push_back(product.b);
    all.second.push_back(product.a);
    all.c.push_back(product.c);
    all.alpha.push_back(1);
    all.beta.push_back(0);
    all.sizes.push_back(1);
  }
  return all;
}

constexpr std::size_t cublas_workspace_bytes = std::size_t{64} << 20;

}  // namespace

struct cublas_peer::state {
  explicit state(grouped_arguments of)
      : arguments(std::move(of)), first(arguments.first), second(arguments.second), c(arguments.c) {
    require(cublasCreate(&handle));
  }
  ~state() { cublasDestroy(handle); }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  void use(cudaStream_t stream) const {
    require(cublasSetStream(handle, stream));
    require(cublasSetWorkspace(handle, workspace.get(), workspace.size()));
  }

  grouped_arguments arguments;
  device_array<const void*> first;
  device_array<const void*> second;
  device_array<void*> c;
  device_array<unsigned char> workspace{cublas_workspace_bytes};
  cublasHandle_t handle{};
};

bool cublas_peer::exists() {
  return true;
}

cublas_peer::cublas_peer(std::vector<peer_product> products, bool sums_rows) {
  // cuBLAS refuses products without rows. Sums over zero rows are left out, too, which does not
  // slow it down.
  std::erase_if(products, [](const peer_product& product) { return product.m == 0 || product.k == 0; });
  state_ = std::make_unique<state>(arguments_of(products, sums_rows));
}
cublas_peer::~cublas_peer() = default;

void cublas_peer::enqueue_loop(cudaStream_t stream) const {
  const grouped_arguments& all = state_->arguments;
  state_->use(stream);
  for (std::size_t i = 0; i < all.m.size(); ++i) {
    require(cublasGemmEx(state_->handle, all.first_operations[i], all.second_operations[i], all.m[i], all.n[i],
                         all.k[i], &all.alpha[i], all.first[i], CUDA_R_16BF, all.first_pitches[i], all.second[i],
                         CUDA_R_16BF, all.second_pitches[i], &all.beta[i], all.c[i], CUDA_R_16BF, all.c_pitches[i],
                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }
}

void cublas_peer::enqueue_grouped(cudaStream_t stream) const {
  const grouped_arguments& all = state_->arguments;
  state_->use(stream);
  require(cublasGemmGroupedBatchedEx(
      state_->handle, all.first_operations.data(), all.second_operations.data(), all.m.data(), all.n.data(),
      all.k.data(), all.alpha.data(), state_->first.get(), CUDA_R_16BF, all.first_pitches.data(), state_->second.get(),
      CUDA_R_16BF, all.second_pitches.data(), all.beta.data(), state_->c.get(), CUDA_R_16BF, all.c_pitches.data(),
      static_cast<int>(all.m.size()), all.sizes.data(), CUBLAS_COMPUTE_32F));
}

}  // namespace tmap::apps::bench
