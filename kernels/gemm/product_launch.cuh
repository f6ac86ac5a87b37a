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

/// The compiled kernel of the plan.
template <gemm::operand_type Type, bool AIsAcross, bool BIsAcross, bool HasOwnB, bool Promotes = false>
cudaError_t launch_product(const product_arguments& arguments, const gemm_call& call) {
  const gemm_plan& plan = call.plan;
  if (plan.is_paired) {
    return launch_config<product_config<Type, 128, 256, 4, AIsAcross, BIsAcross, HasOwnB, true, Promotes>>(arguments,
                                                                                                           call);
  }
  if (plan.tile_m == 64) {
    return launch_config<product_config<Type, 64, 256, 4, AIsAcross, BIsAcross, HasOwnB, false, Promotes>>(arguments,
                                                                                                           call);
  }
  return launch_config<product_config<Type, 128, 128, 6, AIsAcross, BIsAcross, HasOwnB, false, Promotes>>(arguments,
                                                                                                          call);
}

/// What a call begins with, for all forms; the form's problem, its epilogue and its gates are the caller's to add.
inline set_up_request set_up_of(const gemm_call& call, std::uint32_t groups, set_up_request::form kind) {
  set_up_request request{};
  request.kind = kind;
  request.groups = groups;
  request.tile = {call.plan.tile_m, call.plan.tile_n, call.plan.is_paired};
  request.scratch = cut_scratch(call.scratch, groups);
  request.statuses = call.statuses;
  request.header = call.header;
  request.faults = call.faults;
  return request;
}

/// `columns_axis` of B's box is the one that counts its columns.
inline product_arguments arguments_of(const gemm_call& call, std::uint32_t groups, std::uint32_t columns_axis) {
  product_arguments arguments{};
  arguments.b = call.maps.b.map;
  arguments.shape.scratch = cut_scratch(call.scratch, groups);
  arguments.shape.groups = groups;
  arguments.shape.b_pieces = call.plan.tile_n / call.maps.b.spec.box_dim[columns_axis];
  return arguments;
}

}  // namespace tmap::kernels
