// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/expert_parallel.hpp>
#include <tmap/peer_group.hpp>

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "apps/samples/expert_parallel/sizes.hpp"
#include "apps/support/device_array.hpp"

namespace experts {

using tmap::apps::device_array;

/// Places the parts of a window: tokens, then rows by expert and their results, then the workspace.
struct window_places {
  explicit window_places(const layer_sizes& sizes);
  std::uint64_t rows, outputs, scratch, scratch_bytes;
};

/// Owns one rank: its window, its experts, and the graph of its part of the layer.
class rank_layer {
 public:
  rank_layer(const layer_sizes& sizes, std::uint32_t rank, int gpu, tmap::peer_memory window,
             const layer_weights& weights);
  rank_layer(const rank_layer&) = delete;
  rank_layer& operator=(const rank_layer&) = delete;
  ~rank_layer();

  /// Returns the bytes that the window needs.
  static std::uint64_t window_bytes(const layer_sizes& sizes);

  void set_inputs(const layer_inputs& inputs) const;
  void capture();
  void replay() const;
  /// Waits, and returns how the replay ended.
  [[nodiscard]] tmap::result<void> outcome() const;
  rank_results results() const;
  /// Returns the microseconds of route, dispatch, products and combine in the last replay.
  std::vector<float> times() const;

 private:
  void enqueue() const;
  void mark(std::size_t event) const;
  /// Holds the weights of one product of this rank's experts.
  struct own_weights {
    device_array<unsigned char> values;
    device_array<float> scales;
  };
  void quantize() const;
  tmap::gemm::row_problem product(std::uint64_t n, std::uint64_t k, const own_weights& weights) const;
  void multiply() const;
  tmap::gemm::matrix rows_in_window(std::uint64_t offset, std::uint64_t pitch) const;
  std::uint64_t rows() const { return tmap::expert_parallel::row_count(shape_, sizes_.ranks); }

  layer_sizes sizes_;
  std::uint32_t rank_;
  int gpu_;
  tmap::peer_memory window_;
  window_places at_;
  tmap::expert_parallel::shape shape_;
  cudaStream_t stream_{};
  cudaGraphExec_t graph_{};
  std::vector<cudaEvent_t> events_;
  own_weights gate_up_, down_;
  device_array<std::uint16_t> tokens_;  ///< as they are before they are rounded to 8 bits
  device_array<std::int64_t> token_count_;
  device_array<float> x_scales_, row_scales_, activated_scales_;
  device_array<float> logits_;
  device_array<std::int32_t> ids_;
  device_array<float> weights_;
  device_array<std::int32_t> begins_;
  device_array<unsigned char> activated_;
  device_array<std::uint16_t> out_;
  device_array<unsigned char> route_scratch_, product_scratch_, quantize_scratch_;
};

/// Makes the ranks, virtual ones or each on a GPU of its own. Virtual windows stay in `memory`.
std::vector<std::unique_ptr<rank_layer>> make_ranks(const layer_sizes& sizes, const layer_weights& weights,
                                                    std::vector<device_array<unsigned char>>& memory);

}  // namespace experts
