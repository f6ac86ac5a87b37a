// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tmap.h>
#include <tmap/decode.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/expert_parallel.hpp>
#include <tmap/faults.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/map_service.hpp>
#include <tmap/moe.hpp>
#include <tmap/moe_layer.hpp>
#include <tmap/padded_rows.hpp>
#include <tmap/peer_exchange.hpp>
#include <tmap/peer_group.hpp>
#include <tmap/ragged.hpp>
#include <tmap/tensor_batch.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "lib/interop/call.hpp"

// Converts C's structs to the library's (`library_of`) and back (`c_of`). `check_members` comes
// before `library_of` (inputs.hpp). convert_call.hpp converts `tmap_call`.

namespace tmap::interop {

/// Returns whether a number of C is the library's enumerator.
template <class Enum>
constexpr bool mirrors(int number, Enum value) {
  return number == static_cast<int>(value);
}

/// Copies one array to another of the same length.
template <class T, std::size_t Count>
void copy(const T (&from)[Count], T (&to)[Count]) {
  std::copy(from, from + Count, to);
}

/// Checks the members of a struct that only C can get wrong: flags, and numbers that stand for
/// something else in the library. The library checks the rest. Most structs have no such member.
template <class Struct>
void check_members(arguments&, const Struct&, const support::argument&) {}
void check_members(arguments& all, const tmap_im2col_spec& spec, const support::argument& name);
void check_members(arguments& all, const tmap_patch_source& source, const support::argument& name);
void check_members(arguments& all, const tmap_service_options& options, const support::argument& name);
void check_members(arguments& all, const tmap_tensor_batch& side, const support::argument& name);
void check_members(arguments& all, const tmap_quantize_values& values, const support::argument& name);
void check_members(arguments& all, const tmap_row_problem& problem, const support::argument& name);
void check_members(arguments& all, const tmap_column_problem& problem, const support::argument& name);
void check_members(arguments& all, const tmap_weight_problem& problem, const support::argument& name);
void check_members(arguments& all, const tmap_pointer_problem& problem, const support::argument& name);
void check_members(arguments& all, const tmap_route_problem& problem, const support::argument& name);
void check_members(arguments& all, const tmap_layer_problem& problem, const support::argument& name);
void check_members(arguments& all, const tmap_layer_results& results, const support::argument& name);
void check_members(arguments& all, const tmap_peer_start& start, const support::argument& name);
void check_members(arguments& all, const tmap_peer_dispatch_problem& problem, const support::argument& name);
void check_members(arguments& all, const tmap_peer_combine_problem& problem, const support::argument& name);

/// Types and modes pass as they are: `validate` names the rule that an unknown one breaks.
tensor_spec library_of(const tmap_tensor_spec& spec);
im2col_spec library_of(const tmap_im2col_spec& spec);
device_limits library_of(const tmap_device_limits& limits);
tensor_map library_of(const tmap_tensor_map& map);
row_offsets library_of(const tmap_row_offsets& offsets);
tensor_source library_of(const tmap_patch_source& source);
service_options library_of(const tmap_service_options& options);
tensor_layout library_of(const tmap_tensor_layout& tensor);
tensor_batch library_of(const tmap_tensor_batch& side);
dense_batch library_of(const tmap_dense_batch& side);
ragged::packed_buffer library_of(const tmap_packed_buffer& side);
ragged::row_matrix library_of(const tmap_row_matrix& side);
ragged::padded_rows library_of(const tmap_padded_rows& rows);
ragged::row_index library_of(const tmap_row_index& index);
ragged::cast_values library_of(const tmap_cast_values& values);
ragged::quantize_values library_of(const tmap_quantize_values& values);
gemm::matrix library_of(const tmap_matrix& matrix);
gemm::gate library_of(const tmap_gate& gate);
gemm::block_scales library_of(const tmap_block_scales& scales);
gemm::row_problem library_of(const tmap_row_problem& problem);
gemm::column_problem library_of(const tmap_column_problem& problem);
gemm::weight_problem library_of(const tmap_weight_problem& problem);
gemm::pointer_problem library_of(const tmap_pointer_problem& problem);
moe::route_problem library_of(const tmap_route_problem& problem);
moe::route_results library_of(const tmap_route_results& results);
moe::combine_problem library_of(const tmap_combine_problem& problem);
moe::layer_problem library_of(const tmap_layer_problem& problem);
moe::layer_results library_of(const tmap_layer_results& results);
moe::combine_gradients library_of(const tmap_combine_gradients& problem);
peer_start library_of(const tmap_peer_start& start);
exchange_problem library_of(const tmap_exchange_problem& problem);
expert_parallel::shape library_of(const tmap_expert_shape& sizes);
expert_parallel::dispatch_problem library_of(const tmap_peer_dispatch_problem& problem);
expert_parallel::combine_problem library_of(const tmap_peer_combine_problem& problem);
fault_report library_of(const tmap_fault_report& report);

/// Reads one element of `bytes`; null stands for zeros. It does not read elements that are too
/// large, which the call will refuse.
ragged::fill_value fill_of(const void* element, std::uint32_t bytes);

tmap_tensor_spec c_of(const tensor_spec& spec);
tmap_decoded_map c_of(const decoded_map& decoded);
tmap_tensor_map c_of(const tensor_map& map);
tmap_device_limits c_of(const device_limits& limits);
tmap_fault_report c_of(const fault_report& report);
tmap_bad_item c_of(const bad_item& item);
tmap_peer_id c_of(const peer_id& id);

/// Returns C's milliseconds, where 0 stands for the library's default.
std::chrono::milliseconds patience_of(std::uint64_t milliseconds, std::chrono::milliseconds otherwise);
inline std::uint64_t c_of(std::uint64_t number) {
  return number;
}

}  // namespace tmap::interop
