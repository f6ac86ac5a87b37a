// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/gemm/product.cuh"
#include "kernels/gemm/product_launch.hpp"
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
cudaError_t launch_plan(const product_arguments& arguments, const gemm_call& call) {
  constexpr tile_traits pairs{.tile_m = 128, .tile_n = 256, .stages = 4, .is_paired = true};
  constexpr tile_traits low{.tile_m = 64, .tile_n = 256, .stages = 4};
  constexpr tile_traits square{.tile_m = 128, .tile_n = 128, .stages = 6};
  if (call.plan.is_paired) return launch_config<product_config<Product, pairs>>(arguments, call);
  if (call.plan.tile_m == low.tile_m) return launch_config<product_config<Product, low>>(arguments, call);
  return launch_config<product_config<Product, square>>(arguments, call);
}

/// Launches the kernel that was compiled for the orders of operands of 16 bits.
template <gemm::operand_type Type>
cudaError_t launch_orders(const operand_orders& orders, const product_arguments& arguments, const gemm_call& call) {
  if (orders.a_is_across) {
    return orders.b_is_across
               ? launch_plan<product_traits{.type = Type, .a_is_across = true, .b_is_across = true}>(arguments, call)
               : launch_plan<product_traits{.type = Type, .a_is_across = true}>(arguments, call);
  }
  return orders.b_is_across ? launch_plan<product_traits{.type = Type, .b_is_across = true}>(arguments, call)
                            : launch_plan<product_traits{.type = Type}>(arguments, call);
}

/// Launches the kernel of 16 bits that gathers rows of A.
template <gemm::operand_type Type>
cudaError_t launch_gathered(bool b_is_across, const product_arguments& arguments, const gemm_call& call) {
  return b_is_across ? launch_plan<product_traits{.type = Type, .b_is_across = true, .gathers = true}>(arguments, call)
                     : launch_plan<product_traits{.type = Type, .gathers = true}>(arguments, call);
}

}  // namespace tmap::kernels
