// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/row_offsets.hpp>
#include <tmap/device/report_bad.cuh>

#include "kernels/launch.hpp"
#include "kernels/launch_behind.hpp"
#include "kernels/ragged/granule.cuh"
#include "kernels/ragged/move_pipe.cuh"
#include "kernels/ragged_launch.hpp"

#include <algorithm>

namespace tmap::kernels {
namespace {

// Rows are moved without planning: the host knows both matrices, and so the route of every row.
// Tensor maps are never used: on Hopper, one copy through a map moves a box of neighbouring rows,
// not rows by index.

struct rows_memory {
  warp_stage_memory stages[block_warps];
  warp_state warps[block_warps];
};
static_assert(sizeof(rows_memory) <= tmap::detail::ragged_shared_memory_bytes);

/// A row of this many bytes keeps a warp busy. The lanes of a warp are spread over shorter rows.
constexpr std::uint64_t long_row_bytes = 1024;

struct row_work {
  row_move move;
  route way;
  std::uint32_t unit;     ///< of the lanes' copies of short rows; 0 where rows are moved one by one
  std::uint32_t entries;  ///< of the index, that a warp takes at a time: at most one for each lane
};

constexpr std::uint32_t warp_entries = 32;

class row_mover {
 public:
  __device__ row_mover(const row_work& work, move_pipe& pipe) : work_(work), pipe_(pipe), lane_(threadIdx.x % 32) {}

  /// Moves the rows of a warp's index entries from `first` on that exist, and reports the others.
  __device__ void move_entries(std::uint64_t first) {
    const std::uint64_t mine = first + lane_;
    const bool is_entry = lane_ < work_.entries && mine < work_.move.index.count;
    const std::uint64_t row = is_entry ? named_row(mine) : 0;
    const std::uint64_t other = is_entry ? mine : 0;
    const bool exists = is_entry && row < indexed().rows;
    report(mine, is_entry, exists);
    const std::uint32_t all = __ballot_sync(~0u, exists);
    if (work_.unit != 0) return move_short_rows(row, other, all);
    for (std::uint32_t left = all; left != 0; left &= left - 1) {
      const int lane = __ffs(static_cast<int>(left)) - 1;
      move_row(__shfl_sync(~0u, row, lane), __shfl_sync(~0u, other, lane));
    }
  }

 private:
  __device__ const ragged::row_matrix& indexed() const {
    return work_.move.scatters ? work_.move.destination : work_.move.source;
  }

  // Negative numbers become large ones.
  __device__ std::uint64_t named_row(std::uint64_t entry) const {
    const ragged::row_index& index = work_.move.index;
    return static_cast<std::uint64_t>(tmap::detail::integer_array<void>{index.rows, index.bytes}[entry]);
  }

  __device__ void report(std::uint64_t entry, bool is_entry, bool exists) const {
    constexpr auto index_fault = static_cast<std::uint32_t>(ragged::fault::index);
    const ragged::tensor_status status{is_entry && !exists ? index_fault : 0};
    if (is_entry && work_.move.statuses != nullptr) work_.move.statuses[entry] = status;
    if (__all_sync(~0u, status.is_good())) return;
    device::report_bad(work_.move.faults, item_kind::row, entry, status.bits);
    const batch_header rows = device::tally_items(tmap::detail::header_index(entry), status);
    if (lane_ != 0 || work_.move.header == nullptr) return;
    count_bad(rows.bad_count);
    atomicMin(&work_.move.header->first_bad, rows.first_bad);
  }

  // Does not use `add_to_header`, as there may be more rows than a count can hold. The thread that
  // makes the count wrap sets it to the largest value, where it stays.
  __device__ void count_bad(std::uint32_t more) const {
    std::uint32_t& count = work_.move.header->bad_count;
    const std::uint32_t before = atomicAdd(&count, more);
    if (before > ~more) atomicExch(&count, ~0u);
  }

  __device__ void move_row(std::uint64_t indexed_row, std::uint64_t other_row) {
    const row_move& move = work_.move;
    const std::uint64_t from = move.scatters ? other_row : indexed_row;
    const std::uint64_t to = move.scatters ? indexed_row : other_row;
    row_block block{move.source.address + from * move.source.pitch_bytes,
                    move.destination.address + to * move.destination.pitch_bytes,
                    0,
                    0,
                    1,
                    piece_bytes};
    for (std::uint64_t left = move.source.row_bytes; left != 0; left -= block.bytes) {
      if (left < piece_bytes) block.bytes = static_cast<std::uint32_t>(left);
      pipe_.move(block, work_.way);
      block.source += block.bytes;
      block.destination += block.bytes;
    }
  }

  __device__ void move_short_rows(std::uint64_t indexed_row, std::uint64_t other_row, std::uint32_t existing) const {
    const row_move& move = work_.move;
    const std::uint64_t from =
        move.source.address + (move.scatters ? other_row : indexed_row) * move.source.pitch_bytes;
    const std::uint64_t to =
        move.destination.address + (move.scatters ? indexed_row : other_row) * move.destination.pitch_bytes;
    switch (work_.unit) {
      case 16: return move_lanes<uint4>(from, to, existing);
      case 8: return move_lanes<uint2>(from, to, existing);
      case 4: return move_lanes<std::uint32_t>(from, to, existing);
      case 2: return move_lanes<std::uint16_t>(from, to, existing);
      default: return move_lanes<std::uint8_t>(from, to, existing);
    }
  }

  // Each lane passes the addresses of one row.
  template <class Unit>
  __device__ void move_lanes(std::uint64_t from, std::uint64_t to, std::uint32_t existing) const {
    constexpr std::uint32_t batch = 4;
    const std::uint32_t per_row = static_cast<std::uint32_t>(work_.move.source.row_bytes / sizeof(Unit));
    const small_divisor row_of(per_row);
    for (std::uint32_t first = 0; first < per_row; first += batch) {
      Unit values[batch];
      std::uint64_t target[batch];  // 0: none
#pragma unroll
      for (std::uint32_t k = 0; k < batch; ++k) {
        const std::uint32_t i = (first + k) * 32 + lane_;
        const std::uint32_t row = row_of(i);
        const std::uint32_t offset = (i - row * per_row) * static_cast<std::uint32_t>(sizeof(Unit));
        const std::uint64_t source = __shfl_sync(~0u, from, static_cast<int>(row)) + offset;
        const std::uint64_t destination = __shfl_sync(~0u, to, static_cast<int>(row)) + offset;
        const bool exists = row < 32 && (existing >> (row % 32) & 1) != 0;
        target[k] = exists ? destination : 0;
        if (exists) values[k] = load_unit<Unit>(source);
      }
#pragma unroll
      for (std::uint32_t k = 0; k < batch; ++k) {
        if (target[k] != 0) store_unit(target[k], values[k]);
      }
    }
  }

  const row_work& work_;
  move_pipe& pipe_;
  std::uint32_t lane_;
};

__global__ void __launch_bounds__(block_threads, 1) move_rows_kernel(const __grid_constant__ row_work work) {
  extern __shared__ __align__(128) unsigned char dynamic[];
  auto& memory = *reinterpret_cast<rows_memory*>(dynamic);
  const std::uint32_t warp = threadIdx.x / 32;
  move_pipe pipe(memory.warps[warp], memory.stages[warp], 0);
  row_mover mover(work, pipe);
  cudaGridDependencySynchronize();
  const std::uint64_t workers = std::uint64_t{gridDim.x} * block_warps;
  const std::uint64_t number = std::uint64_t{warp} * gridDim.x + blockIdx.x;
  const std::uint64_t entries = work.entries;
  for (std::uint64_t first = number * entries; first < work.move.index.count; first += workers * entries) {
    mover.move_entries(first);
  }
  pipe.drain();
}

// Chooses by the row alone: rows by index never follow each other.
route route_of(const ragged::row_matrix& matrix, route_options options) {
  options.allowed = options.allowed.without(route::tensor_map);
  tensor_layout row{};
  row.address = matrix.address | matrix.pitch_bytes;
  row.element_bytes = 1;
  row.rank = 1;
  row.dim[0] = matrix.row_bytes;
  return choose_route(row, options).way;
}

row_work plan_rows(const row_move& move) {
  const route from = route_of(move.source, move.routes);
  const route to = route_of(move.destination, move.routes);
  // Does not use std::max: in an unoptimised build its mangled name begins with the type it
  // returns, as the exported names of the library do.
  row_work work{move, from < to ? to : from, 0, warp_entries};
  if (work.way != route::plain || move.source.row_bytes >= long_row_bytes) return work;
  const std::uint64_t all = move.source.address | move.source.pitch_bytes | move.source.row_bytes |
                            move.destination.address | move.destination.pitch_bytes | granule_bytes;
  const auto unit = static_cast<std::uint32_t>(all & (0 - all));
  if (unit >= 4 || move.source.row_bytes < least_shifted_row_bytes) work.unit = unit;
  return work;
}

}  // namespace

cudaError_t launch_move_rows(const row_move& move, const device_shape& device, cudaStream_t stream) {
  if (move.header != nullptr) {
    const cudaError_t reset = launch_header_reset(move.header, stream);
    if (reset != cudaSuccess) return reset;
  }
  row_work work = plan_rows(move);
  const auto parts = [](std::uint64_t of, std::uint64_t size) { return (of + size - 1) / size; };
  // Few long rows are spread over all warps.
  const std::uint64_t share = parts(move.index.count, std::uint64_t{device.multiprocessors} * block_warps);
  if (work.unit == 0 && share < warp_entries) work.entries = static_cast<std::uint32_t>(share);
  const std::uint64_t blocks = parts(move.index.count, std::uint64_t{work.entries} * block_warps);
  const launch_size size{static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, device.multiprocessors)),
                         block_threads, sizeof(rows_memory)};
  return launch_behind(move_rows_kernel, size, stream, work);
}

}  // namespace tmap::kernels
