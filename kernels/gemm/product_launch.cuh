// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/gemm/product.cuh"
#include "kernels/gemm/set_up.cuh"
#include "kernels/gemm_launch.hpp"
#include "kernels/launch_behind.hpp"

namespace tmap::kernels {

template <class Config>
cudaError_t launch_config(const product_arguments& arguments, const gemm_call& call) {
  constexpr std::uint32_t cluster = Config::cluster_blocks;
  const std::uint32_t blocks = (call.multiprocessors + cluster - 1) / cluster * cluster;
  return launch_behind(product_kernel<Config>, {blocks, product_threads, Config::shared_bytes, cluster}, call.stream,
                       arguments);
}

/// Launches the kernel that was compiled for the plan.
template <product_traits Product>
cudaError_t launch_product(const product_arguments& arguments, const gemm_call& call) {
  constexpr tile_traits pairs{.tile_m = 128, .tile_n = 256, .stages = 4, .is_paired = true};
  constexpr tile_traits low{.tile_m = 64, .tile_n = 256, .stages = 4};
  constexpr tile_traits square{.tile_m = 128, .tile_n = 128, .stages = 6};
  if (call.plan.is_paired) return launch_config<product_config<Product, pairs>>(arguments, call);
  if (call.plan.tile_m == low.tile_m) return launch_config<product_config<Product, low>>(arguments, call);
  return launch_config<product_config<Product, square>>(arguments, call);
}

/// Returns the arguments that all forms have in common. The caller adds epilogue and gates.
/// `columns_axis` is the axis of B's box that counts its columns.
inline product_arguments arguments_of(const gemm_call& call, std::uint32_t groups, std::uint32_t columns_axis) {
  product_arguments arguments{};
  arguments.b = call.maps.b.map;
  arguments.shape.scratch = cut_scratch(call.scratch, groups);
  arguments.shape.groups = groups;
  arguments.shape.b_pieces = call.plan.tile_n / call.maps.b.spec.box_dim[columns_axis];
  return arguments;
}

}  // namespace tmap::kernels
