// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch_behind.hpp"
#include "kernels/ragged/quantize_blocks.cuh"
#include "kernels/ragged/quantize_columns.cuh"
#include "kernels/ragged/quantize_squares.cuh"
#include "kernels/ragged/quantize_whole_rows.cuh"
#include "kernels/ragged_launch.hpp"

#include <type_traits>

namespace tmap::kernels {
namespace {

// Values go from global memory to registers, where the largest magnitude is found, and from there
// to the destination. A warp takes blocks of 1 x 128, half a warp each, or a tile of blocks of 128
// x 1. A thread block takes a block of 128 x 128, or a long row. It reads rows that do not fit in
// its registers twice. Aligned values are loaded ahead into shared memory, where each lane or warp
// has places of its own, so that loads never cease.

using ragged::quantize_values;
using ragged::scale_block;

template <value_type From, value_type To>
cudaError_t launch(const planned_work& work, const quantize_values& values, const device_shape& device,
                   cudaStream_t stream) {
  const auto launch_blocks = [&](auto kernel, std::uint32_t each, std::uint32_t threads, std::uint32_t shared_bytes) {
    const launch_size size{device.multiprocessors * each, threads, shared_bytes};
    return launch_behind(kernel, size, stream, work, values.powers_of_two);
  };
  const auto start = [&](auto kernel, std::uint32_t threads) {
    return launch_blocks(kernel, threads_per_multiprocessor / threads, threads, lane_ring_bytes(threads));
  };
  switch (values.block) {
    case scale_block::row: return start(quantize_rows_kernel<From, To>, row_threads);
    case scale_block::block_1x128: return start(quantize_parts_kernel<From, To>, row_threads);
    case scale_block::block_128x128: return start(quantize_squares_kernel<From, To>, square_threads<From>);
    default: return launch_blocks(quantize_columns_kernel<From, To>, column_blocks, column_threads, column_ring_bytes);
  }
}

template <value_type From>
cudaError_t launch_from(const planned_work& work, const quantize_values& values, const device_shape& device,
                        cudaStream_t stream) {
  return values.to == value_type::f8_e4m3 ? launch<From, value_type::f8_e4m3>(work, values, device, stream)
                                          : launch<From, value_type::f8_e5m2>(work, values, device, stream);
}

}  // namespace

piece_rule quantize_pieces(const quantize_values& values, std::uint32_t rank) {
  const auto boxes = [&](const box_extents& box) {
    return piece_rule{box.columns, {box.columns, box.rows, 1, 1, 1}, 0, rank, piece_cut::boxes};
  };
  if (values.block == scale_block::block_128x128) return boxes({width, width});
  if (values.block == scale_block::block_128x1) {
    return boxes(values.from == value_type::f32 ? column_tile<value_type::f32>() : column_tile<value_type::bf16>());
  }
  // A warp finds its place in a row once for each piece, so a piece is many times what it holds.
  // The same is true of a block, and it loads rows ahead within a piece.
  constexpr std::uint32_t turns = 8;
  const std::uint32_t lanes = values.block == scale_block::row ? row_threads * turns / 2 : 32 * turns;
  return {lanes * lane_bytes / ragged::value_bytes(values.from), {}, 0, rank};
}

cudaError_t launch_quantize(const planned_work& work, const quantize_values& values, const device_shape& device,
                            cudaStream_t stream) {
  switch (values.from) {
    case value_type::f16: return launch_from<value_type::f16>(work, values, device, stream);
    case value_type::bf16: return launch_from<value_type::bf16>(work, values, device, stream);
    default: return launch_from<value_type::f32>(work, values, device, stream);
  }
}

}  // namespace tmap::kernels
