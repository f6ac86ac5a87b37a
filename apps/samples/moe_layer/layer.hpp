// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/item_status.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "apps/samples/moe_layer/inputs.hpp"
#include "apps/samples/moe_layer/kernels.hpp"
#include "apps/support/device_memory.hpp"

// A mixture-of-experts layer that the host only launches: how many tokens each expert gets is known
// to the GPU alone.

namespace moe {

/// The layer with its device memory. `enqueue` may be captured, and the graph replayed with other
/// tokens.
class layer {
 public:
  /// Fails with `invalid_argument` for sizes it cannot work on, and as CUDA fails.
  [[nodiscard]] static tmap::result<layer> make(const layer_sizes& sizes);

  const layer_sizes& sizes() const { return sizes_; }
  [[nodiscard]] tmap::result<void> set_weights(const layer_weights& weights) const;
  [[nodiscard]] tmap::result<void> set_tokens(const std::vector<float>& tokens) const;

  [[nodiscard]] tmap::result<void> enqueue(cudaStream_t stream) const;

  /// Overwrites all that a run writes with bytes that mean nothing, so that a run that writes
  /// nothing shows.
  [[nodiscard]] tmap::result<void> poison() const;
  /// Waits for the device.
  [[nodiscard]] tmap::result<layer_results> results() const;
  /// What the two products said of the experts' rows.
  [[nodiscard]] tmap::result<std::vector<tmap::batch_header>> product_headers() const;

 private:
  explicit layer(const layer_sizes& sizes) : sizes_(sizes) {}
  [[nodiscard]] tmap::result<void> allocate();
  template <class T>
  [[nodiscard]] static tmap::result<void> add(std::vector<tmap::apps::device_memory>& memory, T*& to,
                                              std::uint64_t count);
  [[nodiscard]] tmap::result<void> gather(cudaStream_t stream) const;
  [[nodiscard]] tmap::result<void> gate_and_up(cudaStream_t stream) const;
  [[nodiscard]] tmap::result<void> down(cudaStream_t stream) const;

  layer_sizes sizes_;
  layer_arrays arrays_{};
  tmap::batch_header* headers_{};
  unsigned char* scratch_{};
  std::uint64_t scratch_bytes_{};
  std::vector<tmap::apps::device_memory> inputs_;
  std::vector<tmap::apps::device_memory> written_;
};

/// One captured run of a layer, which must outlive it.
class layer_graph {
 public:
  [[nodiscard]] static tmap::result<layer_graph> capture(const layer& of);
  layer_graph(layer_graph&& other) noexcept;
  ~layer_graph();

  /// Runs it with what the layer's device memory holds now, and waits.
  [[nodiscard]] tmap::result<void> replay() const;

 private:
  layer_graph() = default;
  cudaStream_t stream_{};
  cudaGraphExec_t executable_{};
};

}  // namespace moe
