// SPDX-License-Identifier: Apache-2.0
// Stands in for the kernels in builds with TMAP_BUILD_KERNELS=OFF. kernels/gemm/left_out.cpp does
// the same for grouped products.
#include "kernels/has_kernels.hpp"
#include "kernels/launch.hpp"
#include "kernels/moe_launch.hpp"
#include "kernels/peer_launch.hpp"
#include "kernels/ragged_launch.hpp"

namespace tmap::kernels {
namespace {

constexpr cudaError_t left_out = cudaErrorNoKernelImageForDevice;

}  // namespace

bool has_kernels() {
  return false;
}

cudaError_t find_fault_records(fault_record**) {
  return left_out;
}

encode_plan plan_encode(std::uint64_t, std::uint32_t) {
  return {.maps_per_warp = 1};
}

cudaError_t launch_encode(const encode_plan&, const map_template&, const tensor_source&, const std::int64_t*,
                          tensor_map*, std::uint64_t, cudaStream_t, const encode_terms&, const fault_sink&,
                          const map_owners&) {
  return left_out;
}

cudaError_t launch_update(const encode_plan&, const map_template&, const tensor_source&, const update_target&,
                          cudaStream_t, const encode_terms&, const fault_sink&, const map_owners&) {
  return left_out;
}

cudaError_t launch_share(const map_batch_ref&, std::uint32_t, std::uint32_t*, cudaStream_t) {
  return left_out;
}

cudaError_t launch_gather(const map_batch_ref&, tensor_map*, map_status*, cudaStream_t) {
  return left_out;
}

cudaError_t launch_header_reset(batch_header*, cudaStream_t) {
  return left_out;
}

cudaError_t launch_open_slots(slot_record*, std::uint64_t, std::uint32_t, hazard_log*, cudaStream_t) {
  return left_out;
}

cudaError_t launch_publish_slots(slot_record*, std::uint64_t, std::uint32_t, cudaStream_t) {
  return left_out;
}

cudaError_t launch_running_sum(const row_offsets&, std::int64_t*, std::uint64_t, void*, std::size_t, cudaStream_t) {
  return left_out;
}

cudaError_t load_encode_kernels() {
  return left_out;
}

cudaError_t load_running_sum_kernels() {
  return left_out;
}

cudaError_t load_update_kernels() {
  return left_out;
}

cudaError_t load_move_kernel() {
  return left_out;
}

std::size_t plan_scratch_bytes(std::uint64_t) {
  return 0;
}

cudaError_t launch_plan(const plan_request&, const plan_target&, cudaStream_t) {
  return left_out;
}

piece_rule move_pieces(std::uint32_t, std::uint32_t) {
  return {};
}

cudaError_t launch_move(const planned_work&, std::uint32_t, const ragged::fill_value&, const device_shape&,
                        cudaStream_t) {
  return left_out;
}

cudaError_t launch_move_rows(const row_move&, const device_shape&, cudaStream_t) {
  return left_out;
}

cudaError_t launch_pad_rows(const row_padding&, cudaStream_t) {
  return left_out;
}

cudaError_t launch_unpad_rows(const row_padding&, cudaStream_t) {
  return left_out;
}

piece_rule transpose_pieces(std::uint32_t, std::uint32_t) {
  return {};
}

cudaError_t launch_transpose(const planned_work&, std::uint32_t, const device_shape&, cudaStream_t) {
  return left_out;
}

piece_rule cast_pieces(const ragged::cast_values&, std::uint32_t) {
  return {};
}

cudaError_t launch_cast(const planned_work&, const ragged::cast_values&, const device_shape&, cudaStream_t) {
  return left_out;
}

piece_rule saxpy_pieces(std::uint32_t) {
  return {};
}

cudaError_t launch_saxpy(const planned_work&, float, const device_shape&, cudaStream_t) {
  return left_out;
}

piece_rule max_pool_pieces(std::uint32_t, std::uint32_t) {
  return {};
}

cudaError_t launch_max_pool_1d(const planned_work&, std::uint32_t, const device_shape&, cudaStream_t) {
  return left_out;
}

piece_rule reduce_pieces(ragged::value_type, std::uint32_t) {
  return {};
}

cudaError_t launch_reduce_rows(const planned_work&, ragged::value_type, ragged::row_reduction, const device_shape&,
                               cudaStream_t) {
  return left_out;
}

piece_rule quantize_pieces(const ragged::quantize_values&, std::uint32_t) {
  return {};
}

cudaError_t launch_quantize(const planned_work&, const ragged::quantize_values&, const device_shape&, cudaStream_t) {
  return left_out;
}

piece_rule column_sum_pieces() {
  return {};
}

cudaError_t launch_column_sums(const planned_work&, ragged::value_type, ragged::value_type, const device_shape&,
                               cudaStream_t) {
  return left_out;
}

cudaError_t launch_route(const route_call&) {
  return left_out;
}

cudaError_t launch_quantize_tokens(const token_rows&, cudaStream_t) {
  return left_out;
}

cudaError_t load_given_route() {
  return left_out;
}

cudaError_t launch_combine(const combine_call&) {
  return left_out;
}

cudaError_t launch_combine_backward(const combine_backward_call&) {
  return left_out;
}

int ask_window_version() {
  return 0;
}

cudaError_t launch_ask_window(const void*, std::uint32_t, std::uint64_t*, cudaStream_t) {
  return left_out;
}

cudaError_t load_peer_kernels() {
  return left_out;
}

cudaError_t launch_exchange(const peer_memory_ref&, const peer::exchange_request&, std::uint64_t, cudaStream_t) {
  return left_out;
}

cudaError_t launch_exchange_and_announce(const peer_memory_ref&, const peer::exchange_request&,
                                         const peer::exchange_request&, std::uint64_t, cudaStream_t) {
  return left_out;
}

cudaError_t launch_pack_parcels(const peer_memory_ref&, const peer::exchange_request&, const peer::parcel_layout&,
                                cudaStream_t) {
  return left_out;
}

cudaError_t launch_deliver_parcels(const peer_memory_ref&, const peer::exchange_request&, const peer::parcel_layout&,
                                   cudaStream_t) {
  return left_out;
}

cudaError_t launch_write_ranks(const dispatch_call&) {
  return left_out;
}

cudaError_t launch_write_records(const dispatch_call&) {
  return left_out;
}

cudaError_t launch_write_choices(const dispatch_call&) {
  return left_out;
}

cudaError_t launch_write_list(const dispatch_call&) {
  return left_out;
}

cudaError_t launch_put_scales(const dispatch_call&) {
  return left_out;
}

cudaError_t launch_dispatch_few(const few_tokens_call&) {
  return left_out;
}

cudaError_t launch_write_returns(const dispatch_call&) {
  return left_out;
}

cudaError_t launch_fetch(const peer_memory_ref&, const peer::fetch_request&, std::uint64_t, cudaStream_t) {
  return left_out;
}

cudaError_t launch_home_sums(const peer_memory_ref&, const home_sums&, std::uint32_t, cudaStream_t) {
  return left_out;
}

cudaError_t load_home_sums(moe::float_type) {
  return left_out;
}

cudaError_t launch_combine(const peer_memory_ref&, const combine_work&, std::uint32_t, std::uint64_t, cudaStream_t) {
  return left_out;
}

cudaError_t load_combine(moe::float_type) {
  return left_out;
}

cudaError_t launch_await_credits(const peer_memory_ref&, std::uint64_t, cudaStream_t) {
  return left_out;
}

cudaError_t launch_peer_self_test(const peer_memory_ref&, const map_template&, std::uint64_t, cudaStream_t) {
  return left_out;
}

cudaError_t launch_peer_barrier(const peer_memory_ref&, std::uint64_t, cudaStream_t) {
  return left_out;
}

}  // namespace tmap::kernels
