// SPDX-License-Identifier: Apache-2.0
#pragma once

// The way from lib/ragged to the kernels of kernels/ragged: plain functions that enqueue work and
// return the code of the CUDA runtime. The caller has checked the arguments; counts are at least 1.
// All use programmatic dependent launch where it helps: a kernel after the planning one waits for
// it on the device.

#include <tmap/detail/judge_tensors.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/map_template.hpp>
#include <tmap/padded_rows.hpp>
#include <tmap/ragged.hpp>

#include "kernels/ragged/planned_tensor.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tmap::kernels {

/// One of the two sides of an operation, for the planning kernel. All arrays are in device memory.
enum class side_kind : std::uint32_t {
  tensors,  ///< a `tensor_batch`
  dense,    ///< a `dense_batch`, its strides and pitch given
  packed,   ///< a `packed_buffer`: dims of the other side, address by a running sum of padded bytes
};
struct side {
  side_kind kind;
  tensor_batch tensors;  ///< also its element_bytes and rank for the other kinds
  dense_batch dense;
  ragged::packed_buffer packed;
  const std::int64_t* row_begins;  ///< of `ragged_rows` by sizes: the running sum; else null
};

/// With `swapped` and `reduced`, only the source decides the route. With `clipped`, each tensor is
/// followed by `rank` boxes that are filled. With `corner`, the source is dense.
using tmap::detail::shape_relation;

/// The scales that `quantize` writes: a third side.
struct scale_side {
  side tensors;
  tmap::detail::scale_grid grid;
};

struct plan_request {
  side source;
  side destination;
  std::uint64_t count;  ///< tensors of the caller; planned ones: count, or count * (1 + rank) when `clipped`
  std::uint32_t rank;
  shape_relation relation;
  std::uint32_t kept_axes;  ///< the lowest ones that must not be folded: 0, 1 where rows matter, 2 when transposing
  route_options routes;
  piece_rule rule;
  map_template source_map;          ///< template of the maps, for route `tensor_map` (unused when not allowed)
  map_template destination_map;     ///< of rank 0: no destination is stored to through a map
  ragged::tensor_status* statuses;  ///< may be null, as may be the header
  batch_header* header;
  const address_window* windows;
  std::uint32_t window_count;
  fault_sink faults;
  scale_side scales{};  ///< read if `plan_target::scales` is not null
};

/// The memory to which planning writes its results. `begins` are the `count + 1` byte offsets of a
/// packed side, or null.
struct plan_target {
  planned_tensor* tensors;
  std::uint64_t* ends;
  tensor_map* maps;  ///< two for each tensor of the caller, or null: then no tensor takes route `tensor_map`
  std::int64_t* begins;
  device::queue_counter* queue;  ///< made 0; or null
  void* scratch;
  std::size_t scratch_bytes;
  planned_scales* scales{};  ///< one for each tensor, or null
};

/// The size of a `device::queue_counter`.
inline constexpr std::size_t queue_counter_bytes = sizeof(std::uint32_t);

std::size_t plan_scratch_bytes(std::uint64_t planned_count);
cudaError_t launch_plan(const plan_request& request, const plan_target& target, cudaStream_t stream);

/// Properties of the current device by which the kernels choose their grids.
struct device_shape {
  std::uint32_t multiprocessors;
  std::uint32_t shared_bytes_per_block;  ///< the most a block can opt in to
};

// The working kernels. Each has a rule by which the work is cut.

/// Moves bytes as they are. Boxes without a source get `fill`. Both sides have `element_bytes`.
piece_rule move_pieces(std::uint32_t element_bytes, std::uint32_t rank);
cudaError_t launch_move(const planned_work& work, std::uint32_t element_bytes, const ragged::fill_value& fill,
                        const device_shape& device, cudaStream_t stream);

struct row_move {
  ragged::row_matrix source;
  ragged::row_matrix destination;
  ragged::row_index index;
  bool scatters;  ///< else gathers
  route_options routes;
  ragged::tensor_status* statuses;
  batch_header* header;
  fault_sink faults;
};
cudaError_t launch_move_rows(const row_move& move, const device_shape& device, cudaStream_t stream);

struct row_padding {
  ragged::padded_rows rows;
  ragged::fill_value fill;  ///< of `pad_rows`
};
/// Each is one launch. There is at least one byte to write.
cudaError_t launch_pad_rows(const row_padding& padding, cudaStream_t stream);
cudaError_t launch_unpad_rows(const row_padding& padding, cudaStream_t stream);

piece_rule transpose_pieces(std::uint32_t element_bytes, std::uint32_t rank);
cudaError_t launch_transpose(const planned_work& work, std::uint32_t element_bytes, const device_shape& device,
                             cudaStream_t stream);

piece_rule cast_pieces(const ragged::cast_values& values, std::uint32_t rank);
cudaError_t launch_cast(const planned_work& work, const ragged::cast_values& values, const device_shape& device,
                        cudaStream_t stream);

piece_rule saxpy_pieces(std::uint32_t rank);
cudaError_t launch_saxpy(const planned_work& work, float a, const device_shape& device, cudaStream_t stream);

piece_rule max_pool_pieces(std::uint32_t radius, std::uint32_t rank);
cudaError_t launch_max_pool_1d(const planned_work& work, std::uint32_t radius, const device_shape& device,
                               cudaStream_t stream);

/// The number of partial results of rows that several warps share. Each two of the 8 warps of a
/// block have room for one row of 512 slices.
inline constexpr std::uint32_t most_reduce_blocks = tmap::detail::hopper_multiprocessors;
inline constexpr std::uint32_t reduce_partials = (most_reduce_blocks * 8 / 2 + 1) * 512;
piece_rule reduce_pieces(ragged::value_type type, std::uint32_t rank);
cudaError_t launch_reduce_rows(const planned_work& work, ragged::value_type type, ragged::row_reduction reduction,
                               const device_shape& device, cudaStream_t stream);

/// Every plan for these has scales. They choose how to load by alignment alone, so that all
/// routes are alike.
piece_rule quantize_pieces(const ragged::quantize_values& values, std::uint32_t rank);
cudaError_t launch_quantize(const planned_work& work, const ragged::quantize_values& values, const device_shape& device,
                            cudaStream_t stream);

/// The number of partial sums of columns that several blocks share. Each of two blocks for a
/// multiprocessor has room for 64 columns in 64 slices.
inline constexpr std::uint32_t column_partials = 2 * tmap::detail::hopper_multiprocessors * 64 * 64;
piece_rule column_sum_pieces();
cudaError_t launch_column_sums(const planned_work& work, ragged::value_type from, ragged::value_type to,
                               const device_shape& device, cudaStream_t stream);

}  // namespace tmap::kernels
