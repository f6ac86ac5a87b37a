// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/item_status.hpp>
#include <tmap/moe_layer.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "apps/samples/moe_layer/inputs.hpp"
#include "apps/samples/moe_layer/kernels.hpp"
#include "apps/support/device_memory.hpp"

// A mixture-of-experts layer: `tmap::moe::layer` with memory, and a graph. The host only launches
// it; the GPU alone knows how many tokens each expert gets.

namespace moe {

/// Owns the layer and its device memory. `enqueue` may be captured, and the graph replayed with
/// other tokens.
class layer {
 public:
  /// Fails with `invalid_argument` for sizes that the layer does not support, and if CUDA fails.
  [[nodiscard]] static tmap::result<layer> make(const layer_sizes& sizes);

  const layer_sizes& sizes() const { return sizes_; }
  [[nodiscard]] tmap::result<void> set_weights(const layer_weights& weights) const;
  [[nodiscard]] tmap::result<void> set_tokens(const std::vector<float>& tokens) const;

  /// Enqueues the scores and the layer of tmap.
  [[nodiscard]] tmap::result<void> enqueue(cudaStream_t stream) const;

  /// Overwrites all outputs of a run with invalid values, so that a run that writes nothing is
  /// detected.
  [[nodiscard]] tmap::result<void> poison() const;
  /// Returns the results. Waits for the device.
  [[nodiscard]] tmap::result<layer_results> results() const;
  /// Returns how many choices were bad.
  [[nodiscard]] tmap::result<tmap::batch_header> header() const;
  /// Returns the statuses of the experts, first those of the first product.
  [[nodiscard]] tmap::result<std::vector<tmap::gemm::group_status>> statuses() const;

 private:
  explicit layer(const layer_sizes& sizes) : sizes_(sizes) {}
  [[nodiscard]] tmap::result<void> allocate();
  template <class T>
  [[nodiscard]] static tmap::result<void> add(std::vector<tmap::apps::device_memory>& memory, T*& to,
                                              std::uint64_t count);
  tmap::moe::layer_problem problem() const;

  layer_sizes sizes_;
  layer_arrays arrays_{};
  tmap::batch_header* header_{};
  tmap::gemm::group_status* statuses_{};
  unsigned char* scratch_{};
  std::uint64_t scratch_bytes_{};
  std::vector<tmap::apps::device_memory> inputs_;
  std::vector<tmap::apps::device_memory> written_;
};

/// One captured run of a layer. The layer must outlive it.
class layer_graph {
 public:
  [[nodiscard]] static tmap::result<layer_graph> capture(const layer& of);
  layer_graph(layer_graph&& other) noexcept;
  ~layer_graph();

  /// Runs it with the current contents of the layer's device memory, and waits.
  [[nodiscard]] tmap::result<void> replay() const;

 private:
  layer_graph() = default;
  cudaStream_t stream_{};
  cudaGraphExec_t executable_{};
};

}  // namespace moe
