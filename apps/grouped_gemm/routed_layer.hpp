// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/arrays.hpp"
#include "apps/grouped_gemm/shapes.hpp"
#include "kernels/gemm_launch.hpp"

// The products of a layer of experts behind the last kernel of its routing step, whose parts can be enqueued one by
// one: how long each order of them takes says where their maps are best made.

namespace tmap::bench {

struct routing_step;

/// `rows` choices of an expert; gates and values [rows, width] by [width, 2 * hidden], then [rows, hidden] by
/// [hidden, width].
struct layer_shape {
  std::uint32_t groups;
  std::uint64_t rows;
  std::uint64_t width;
  std::uint64_t hidden;
  row_weights weights;
  std::string name() const;
};

inline constexpr std::uint32_t layer_products = 2;

/// Enough for every shape that fits; operands are random normal numbers.
class layer_memory {
 public:
  layer_memory();

 private:
  friend class routed_layer;
  device_array<unsigned char> a_;
  device_array<unsigned char> b_;
  device_array<unsigned char> c_;
  device_array<unsigned char> scratch_;
  device_array<std::int32_t> experts_;
  device_array<std::uint32_t> counts_;
  device_array<std::int32_t> ends_;
  device_array<std::uint32_t> done_;
};

/// All that one run leaves.
struct layer_traces {
  std::vector<std::int32_t> ends;
  std::vector<unsigned char> workspaces[layer_products];  ///< the addresses of safe empty maps as 0
  std::vector<unsigned char> results[layer_products];
};

/// Enqueues the parts of one layer, each behind what was enqueued before it (programmatic dependent launch). One at a
/// time uses a memory.
class routed_layer {
 public:
  routed_layer(const layer_shape& shape, const layer_memory& memory);

  /// Rows of each expert.
  const std::vector<std::int64_t>& sizes() const { return sizes_; }

  void route(cudaStream_t stream) const;
  /// `route`, and in its last block what `set_up` does for the first `products` products.
  void route_and_set_up(cudaStream_t stream, std::uint32_t products) const;
  void set_up(cudaStream_t stream, std::uint32_t product) const;
  /// Behind a set-up of this product, which holds for any number of runs.
  void multiply(cudaStream_t stream, std::uint32_t product) const;
  /// `multiply_async`: set-up and product.
  void call_library(cudaStream_t stream, std::uint32_t product) const;
  /// From here on matrices B that lie elsewhere, so that L2 does not hold them.
  void move_on() { ++turn_; }

  /// Overwrites what a run writes. Waits.
  void poison() const;
  layer_traces traces() const;

 private:
  struct product {
    gemm::row_problem problem;
    const kernels::gemm_plan* plan;
    std::vector<kernels::gemm_maps> maps;  ///< for each place of B
    gemm::workspace scratch;
    std::size_t b_bytes;
    std::size_t result_bytes;
  };
  product make_product(std::uint32_t index, std::uint64_t n, std::uint64_t k, gemm::epilogue_kind kind) const;
  kernels::gemm_call call_of(const product& of, cudaStream_t stream) const;
  routing_step step() const;
  void hide_safe_addresses(std::vector<unsigned char>& workspace) const;

  layer_shape shape_;
  const layer_memory& memory_;
  std::vector<std::int64_t> sizes_;
  std::uint32_t multiprocessors_;
  std::vector<product> products_;
  std::size_t turn_{};
};

}  // namespace tmap::bench
