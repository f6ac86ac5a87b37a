// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

namespace tmap {

/// @file
/// A call skips the bad maps, tensors, rows and groups that it meets on the device. These types
/// count them there. They are plain data, which faults.hpp reads.

/// The public calls that judge what they read from device memory.
enum class batch_call : std::uint32_t {
  none,
  encode_batch,
  service_encode,
  service_update,
  ragged_copy,
  ragged_pack,
  ragged_unpack,
  ragged_pad,
  ragged_unpad,
  ragged_gather_rows,
  ragged_scatter_rows,
  ragged_transpose,
  ragged_cast,
  ragged_saxpy,
  ragged_max_pool_1d,
  ragged_reduce_rows,
  ragged_quantize,
  ragged_column_sums,
  gemm_rows,
  gemm_columns,
  gemm_weights,
  gemm_pointers,
  moe_route,
  moe_combine,
  moe_combine_backward,
};
inline constexpr std::uint32_t batch_call_count = static_cast<std::uint32_t>(batch_call::moe_combine_backward) + 1;

namespace detail {
/// The names of the calls, in the order of `batch_call`.
inline constexpr const char* batch_call_names[] = {
    "none",
    "encode_batch",
    "map_service::encode",
    "map_service::update",
    "ragged::copy",
    "ragged::pack",
    "ragged::unpack",
    "ragged::pad",
    "ragged::unpad",
    "ragged::gather_rows",
    "ragged::scatter_rows",
    "ragged::transpose",
    "ragged::cast",
    "ragged::saxpy",
    "ragged::max_pool_1d",
    "ragged::reduce_rows",
    "ragged::quantize",
    "ragged::column_sums",
    "gemm::multiply of a row_problem",
    "gemm::multiply of a column_problem",
    "gemm::multiply of a weight_problem",
    "gemm::multiply of a pointer_problem",
    "moe::route",
    "moe::combine",
    "moe::combine_backward",
};
static_assert(sizeof(batch_call_names) / sizeof(batch_call_names[0]) == batch_call_count);
}  // namespace detail

/// The kinds of items that calls judge one by one. The choices of `moe` calls count as rows.
enum class item_kind : std::uint32_t { map, tensor, row, group };
inline constexpr std::uint32_t item_kind_count = 4;

TMAP_HOST_DEVICE constexpr item_kind items_of(batch_call call) {
  if (call >= batch_call::moe_route) return item_kind::row;
  if (call >= batch_call::gemm_rows) return item_kind::group;
  if (call == batch_call::ragged_gather_rows || call == batch_call::ragged_scatter_rows) return item_kind::row;
  return call >= batch_call::ragged_copy ? item_kind::tensor : item_kind::map;
}

/// One bad item, and the call that met it.
struct bad_item {
  batch_call call{};       ///< none: there is no bad item
  std::uint64_t number{};  ///< of the call; the process numbers its calls from 1 as they are enqueued
  /// In the call's batch. Of `service_update` it is the map's, and of faults of a row the row's.
  std::uint64_t index{};
  std::uint64_t bits{};  ///< of its status: a `rule_set` of a map, else the bits of the call's `fault`
};

/// The counters that kernels increment for bad items. The record is in device memory and begins at
/// zero.
struct alignas(64) fault_record {
  enum class claim : std::uint64_t { open, taken, written };

  std::uint64_t counts[item_kind_count]{};  ///< bad ones, by `item_kind`
  claim first{};                            ///< `written`: the members below say which bad item was first
  std::uint64_t call{};                     ///< `fault_sink::call` of the first bad item
  std::uint64_t index{};
  std::uint64_t bits{};
};
static_assert(sizeof(fault_record) == 64, "read by one copy of 64 bytes");

/// Names the record in which a kernel reports bad items. A kernel parameter. With a null record the
/// kernel reports nothing.
struct fault_sink {
  fault_record* record{};
  std::uint64_t call{};  ///< `numbered(call, number)`
};

TMAP_HOST_DEVICE constexpr std::uint64_t numbered(batch_call call, std::uint64_t number) {
  return number << 8 | static_cast<std::uint64_t>(call);
}
/// Does the inverse: returns the call, or its number, from what `numbered` returned.
TMAP_HOST_DEVICE constexpr batch_call call_of(std::uint64_t numbered) {
  return static_cast<batch_call>(numbered & 0xff);
}
TMAP_HOST_DEVICE constexpr std::uint64_t number_of(std::uint64_t numbered) {
  return numbered >> 8;
}

/// Whether a call waits for its own work and fails if an item was bad. Meant for debugging: a
/// checked call waits for the device.
enum class fault_check : std::uint32_t {
  environment,  ///< the value of the environment variable TMAP_CHECK: `off` (also when unset) or `sync`
  off,
  sync,
};

}  // namespace tmap
