// SPDX-License-Identifier: Apache-2.0
#pragma once

// The way from lib/ragged to the kernels of kernels/ragged: plain functions that enqueue work and
// return what the CUDA runtime said. Arguments have been checked by the caller; counts are at least
// 1. All take part in programmatic dependent launch where it gains: a kernel behind the planning
// one waits for it on the device.

#include <tmap/detail/judge_tensors.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/map_template.hpp>
#include <tmap/ragged.hpp>

#include "kernels/ragged/planned_tensor.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tmap::kernels {

/// The two sides of an operation as the planning kernel reads them. All arrays are device memory by
/// now.
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

/// `swapped` and `reduced`: the route is chosen by the source alone. `clipped`: each tensor is
/// followed by `rank` boxes that are filled. `corner`: the source is dense.
using tmap::detail::shape_relation;

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
};

/// Where planning leaves its work. `begins` are the byte begins of a packed side, `count + 1`; null
/// otherwise.
struct plan_target {
  planned_tensor* tensors;
  std::uint64_t* ends;
  tensor_map* maps;  ///< two for each tensor of the caller, or null: then no tensor takes route `tensor_map`
  std::int64_t* begins;
  device::queue_counter* queue;  ///< made 0; or null
  void* scratch;
  std::size_t scratch_bytes;
};

/// Of a `device::queue_counter`.
inline constexpr std::size_t queue_counter_bytes = sizeof(std::uint32_t);

std::size_t plan_scratch_bytes(std::uint64_t planned_count);
cudaError_t launch_plan(const plan_request& request, const plan_target& target, cudaStream_t stream);

/// What the current device has, for the kernels to size their grids by.
struct device_shape {
  std::uint32_t multiprocessors;
  std::uint32_t shared_bytes_per_block;  ///< the most a block can opt in to
};

// The working kernels. Each says how it wants the work cut.

/// Bytes moved as they are; boxes without a source get `fill`. `element_bytes` of both sides.
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

/// Results of the slices of rows that several warps share: one row for each two of 8 warps a block,
/// 512 slices each.
inline constexpr std::uint32_t most_reduce_blocks = tmap::detail::hopper_multiprocessors;
inline constexpr std::uint32_t reduce_partials = (most_reduce_blocks * 8 / 2 + 1) * 512;
piece_rule reduce_pieces(ragged::value_type type, std::uint32_t rank);
cudaError_t launch_reduce_rows(const planned_work& work, ragged::value_type type, ragged::row_reduction reduction,
                               const device_shape& device, cudaStream_t stream);

}  // namespace tmap::kernels
