// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/report_bad.cuh>
#include <tmap/device/work_queue.cuh>

#include <algorithm>
#include <type_traits>
#include <variant>

#include "kernels/batch/block_header.cuh"
#include "kernels/batch/running_sum.cuh"
#include "kernels/batch/scan.cuh"
#include "kernels/launch_behind.hpp"
#include "kernels/ragged/plan_plain.cuh"
#include "kernels/ragged/plan_record.cuh"
#include "kernels/ragged/plan_stage.cuh"
#include "kernels/ragged/plan_tensor.cuh"
#include "kernels/ragged_launch.hpp"

namespace tmap::kernels {
namespace {

constexpr std::uint32_t lanes = device::warp_lanes;
constexpr std::uint32_t plan_warps = 4;
constexpr std::uint32_t plan_threads = plan_warps * lanes;
// A block adds up all blocks before it. More blocks would cost more than their threads gain.
constexpr std::uint64_t most_blocks = 2048;

/// A block plans `rounds` times as many tensors as it has threads.
struct plan_grid {
  std::uint32_t blocks;
  std::uint32_t rounds;
};

plan_grid grid_of(std::uint64_t count) {
  const std::uint64_t rounds = (count + plan_threads * most_blocks - 1) / (plan_threads * most_blocks);
  const std::uint64_t per_block = rounds * plan_threads;
  return {static_cast<std::uint32_t>((count + per_block - 1) / per_block), static_cast<std::uint32_t>(rounds)};
}

/// The totals of a block's tensors, for the finishing kernel.
struct alignas(16) block_totals {
  std::uint64_t pieces;
  std::uint64_t reserved;
  batch_header header;
};

struct plan_results {
  planned_tensor* tensors;
  std::uint64_t* ends;
  block_totals* totals;
  std::int64_t* begins;
  ragged::tensor_status* statuses;
  batch_header* header;
  device::queue_counter* queue;
  fault_sink faults;
  planned_scales* scales;
};

/// Stages the record of tensor `i` if `plan_plainly` can make it, and returns its pieces, or 0.
template <std::uint32_t Rank>
__device__ std::uint64_t stage_plainly(const plan_arguments& plan, std::uint64_t i, record_stage& stage) {
  planned_tensor record;
  const std::uint64_t pieces = plan_plainly<Rank>(plan, i, record);
  if (pieces != 0) stage_record(stage, record);
  return pieces;
}

/// Does the same for a tensor with scales, and writes their places.
template <std::uint32_t Rank>
__device__ std::uint64_t stage_plainly_with_scales(const plan_arguments& plan, const plan_results& results,
                                                   std::uint64_t i, record_stage& stage) {
  planned_tensor record;
  planned_scales scales;
  const std::uint64_t pieces = plan_plainly_with_scales<Rank>(plan, i, record, scales);
  if (pieces == 0) return 0;
  stage_record(stage, record);
  results.scales[i] = scales;
  return pieces;
}

/// Stages record `k` of a judged tensor and returns its pieces.
template <std::uint32_t Rank>
__device__ std::uint64_t stage_judged(const plan_arguments& plan, const tensor_verdict& tensor, std::uint64_t i,
                                      std::uint32_t k, record_stage& stage) {
  const planned_tensor record = k == 0 ? plan_move(plan, tensor, i) : plan_fill(plan, tensor, i, k - 1);
  stage_record(stage, record);
  return count_pieces<Rank>(record, plan.rule);
}

/// Judges tensor `i`, writes its records, and returns the pieces of each. All threads call it;
/// those past the end of the batch do nothing.
template <std::uint32_t Rank, std::uint32_t Records, bool HasScales>
__device__ void plan_one(const plan_arguments& plan, const plan_results& results, std::uint64_t i, record_stage& stage,
                         block_header& header, std::uint64_t (&pieces)[Records]) {
  const bool has_tensor = i < plan.count;
  pieces[0] = 0;
  if constexpr (HasScales) {
    if (has_tensor) pieces[0] = stage_plainly_with_scales<Rank>(plan, results, i, stage);
  } else if constexpr (Records == 1) {
    if (has_tensor) pieces[0] = stage_plainly<Rank>(plan, i, stage);
  }
  const bool is_judged = has_tensor && pieces[0] == 0;
  tensor_verdict tensor{};
  if (is_judged) tensor = judge_tensor<Rank, HasScales>(plan, i);
  if (HasScales && is_judged) results.scales[i] = tensor.scales;
  const ragged::tensor_status status{tensor.bits};
  if (has_tensor && results.statuses != nullptr) results.statuses[i] = status;
  if (!__all_sync(~0u, status.is_good())) {
    device::report_bad(results.faults, item_kind::tensor, i, status.is_bad() ? status.bits : 0);
    const batch_header tensors = device::tally_items(static_cast<std::uint32_t>(i), status);
    if (threadIdx.x % lanes == 0) device::add_to_header(header, tensors);
  }
#pragma unroll
  for (std::uint32_t k = 0; k < Records; ++k) {
    if (is_judged) pieces[k] = stage_judged<Rank>(plan, tensor, i, k, stage);
    if (!has_tensor) pieces[k] = 0;
    store_records(stage, results.tensors, i * Records + k, has_tensor);
  }
}

/// Plans one tensor with each thread. `Records` is 1, or 1 + Rank when padding. The ends still lack
/// the pieces of earlier blocks.
template <std::uint32_t Rank, std::uint32_t Records, bool HasScales = false>
__global__ void __launch_bounds__(plan_threads)
    plan_kernel(const __grid_constant__ plan_arguments plan, const __grid_constant__ plan_results results,
                std::uint32_t rounds) {
  __shared__ record_stage stages[plan_warps];
  __shared__ block_header header;
  cudaTriggerProgrammaticLaunchCompletion();
  if (threadIdx.x == 0) header.reset();
  __syncthreads();
  cudaGridDependencySynchronize();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (results.begins != nullptr) results.begins[0] = 0;
    if (results.queue != nullptr) results.queue->taken = 0;
  }
  std::uint64_t end = 0;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::uint64_t i = (std::uint64_t{blockIdx.x} * rounds + round) * plan_threads + threadIdx.x;
    std::uint64_t pieces[Records];
    plan_one<Rank, Records, HasScales>(plan, results, i, stages[threadIdx.x / lanes], header, pieces);
    std::uint64_t sum = 0;
#pragma unroll
    for (const std::uint64_t count : pieces) sum += count;
    std::uint64_t at = join_before_thread<plan_warps>(sum, end, add{});
#pragma unroll
    for (std::uint32_t k = 0; k < Records; ++k) {
      at += pieces[k];
      if (i < plan.count) results.ends[i * Records + k] = at;
    }
  }
  if (threadIdx.x != 0) return;
  if (gridDim.x > 1) results.totals[blockIdx.x] = {end, 0, header.value()};
  if (gridDim.x == 1 && results.header != nullptr) *results.header = header.value();
}

// Maps of tensors that turn out bad after all point to this page. Loading the module zeroes it.
__device__ device::guard_page plan_page;

struct finish_arguments {
  plan_results results;
  tensor_map* maps;
  std::uint64_t count;  ///< of the caller's tensors
  std::uint32_t records;
  std::uint32_t rounds;
};

/// Writes the header of the batch. One block calls it.
__device__ void finish_header(const finish_arguments& finish) {
  __shared__ block_header header;
  if (threadIdx.x == 0) header.reset();
  __syncthreads();
  for (std::uint32_t block = threadIdx.x; block < gridDim.x; block += plan_threads) {
    device::add_to_header(header, finish.results.totals[block].header);
  }
  __syncthreads();
  if (threadIdx.x == 0) *finish.results.header = header.value();
}

/// Adds the pieces of earlier blocks to this block's ends.
__device__ void finish_ends(const finish_arguments& finish) {
  std::uint64_t part = 0;
  for (std::uint32_t block = threadIdx.x; block < blockIdx.x; block += plan_threads) {
    part += finish.results.totals[block].pieces;
  }
  std::uint64_t before = 0;
  join_before_thread<plan_warps>(part, before, add{});
  const std::uint64_t share = std::uint64_t{finish.rounds} * plan_threads * finish.records;
  const std::uint64_t first = blockIdx.x * share;
  const std::uint64_t planned = finish.count * finish.records;
  const std::uint64_t last = planned - first < share ? planned : first + share;
  for (std::uint64_t at = first + threadIdx.x; at < last; at += plan_threads) finish.results.ends[at] += before;
}

/// Returns one side of a planned tensor as a patch, and a harmless patch for a tensor without maps.
struct planned_patch {
  const finish_arguments& finish;
  std::uint32_t takers;  ///< lanes whose tensor has maps
  bool is_destination;

  __device__ map_patch operator()(std::uint64_t i) const {
    const bool takes = (takers >> (i % lanes) & 1) != 0;
    const planned_tensor& tensor = finish.results.tensors[takes ? i * finish.records : 0];
    map_patch patch{};
    patch.global_address = reinterpret_cast<std::uint64_t>(&plan_page);
    if (takes) patch.global_address = is_destination ? tensor.destination : tensor.source;
#pragma unroll
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      patch.global_dim[axis] = takes ? tensor.dim[axis] : 1;
      if (axis == 0) continue;
      const std::uint64_t stride =
          is_destination ? tensor.destination_stride[axis - 1] : tensor.source_stride[axis - 1];
      // The stride of an axis of one element may be anything, but a map's may not.
      patch.global_stride_bytes[axis - 1] = takes && tensor.dim[axis] > 1 ? stride : sizeof(uint4);
    }
    return patch;
  }
};

/// Encodes the maps of one side of a warp's tensors from `first` on. All 32 lanes call it.
__device__ void encode_side(const finish_arguments& finish, const map_template& base, device::warp_stage& stage,
                            std::uint64_t first, std::uint32_t takers, bool is_destination) {
  constexpr std::uint32_t chunks = sizeof(tensor_map) / sizeof(uint4);
  device::warp_encoder encoder(base, stage);
  encoder.compose(planned_patch{finish, takers, is_destination}, first, lanes, device::map_guard{&plan_page});
  for (std::uint32_t at = threadIdx.x % lanes; at < lanes * chunks; at += lanes) {
    if ((takers >> (at / chunks) & 1) == 0) continue;
    tensor_map* const slot = finish.maps + 2 * (first + at / chunks) + (is_destination ? 1 : 0);
    reinterpret_cast<uint4*>(slot)[at % chunks] = stage.chunk(at);
  }
  __syncwarp();
}

/// Finishes what needs all plans: ends and header if there are several blocks, and maps.
template <bool HasMaps>
__global__ void __launch_bounds__(plan_threads)
    finish_kernel(const __grid_constant__ finish_arguments finish, const __grid_constant__ map_template source,
                  const __grid_constant__ map_template destination) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  if (gridDim.x > 1) {
    finish_ends(finish);
    if (blockIdx.x == 0 && finish.results.header != nullptr) finish_header(finish);
  }
  if constexpr (HasMaps) {
    __shared__ device::warp_stage stages[plan_warps];
    device::warp_stage& stage = stages[threadIdx.x / lanes];
    for (std::uint32_t round = 0; round < finish.rounds; ++round) {
      const std::uint64_t i = (std::uint64_t{blockIdx.x} * finish.rounds + round) * plan_threads + threadIdx.x;
      const bool takes = i < finish.count && finish.results.tensors[i * finish.records].way == route::tensor_map;
      const std::uint32_t takers = __ballot_sync(~0u, takes);
      if (takers == 0) continue;
      const std::uint64_t first = i - threadIdx.x % lanes;
      encode_side(finish, source, stage, first, takers, false);
      if (destination.spec.rank != 0) encode_side(finish, destination, stage, first, takers, true);
    }
    device::warp_encoder<>::release();
  }
}

/// Returns the bytes that each tensor takes in a packed buffer.
template <std::uint32_t Rank>
struct packed_size {
  plan_side side;
  std::uint64_t alignment;
  tmap::detail::tensor_limits limits;
  bool is_destination;

  __device__ std::uint64_t operator()(std::uint64_t i) const {
    const side_extents tensor = detail::read_tensor<Rank>(side, i);
    const tmap::detail::tensor_limits own = limits;  // a reference into the kernel's parameters costs local memory
    return tmap::detail::packed_bytes<Rank>(tensor, side.element_bytes, alignment, own, is_destination);
  }
};

/// Converts a source to the type that the planning kernel reads.
struct source_reading {
  template <class Source>
  plan_side::source operator()(const Source& source) const {
    return source;
  }
  plan_side::source operator()(const ragged_rows& rows) const {
    if (rows.offsets.bytes == sizeof(std::int32_t)) return device::typed_rows_of<std::int32_t>(rows);
    return device::typed_rows_of<std::int64_t>(rows);
  }
};

plan_side side_of(const side& from) {
  plan_side to{};
  to.kind = from.kind;
  to.element_bytes = from.tensors.element_bytes;
  to.tensors = std::visit(source_reading{}, from.tensors.tensors);
  to.inner = from.tensors.inner;
  to.row_begins = from.row_begins;
  to.dense = from.dense;
  const bool is_packed = from.kind == side_kind::packed;
  to.packed_address = is_packed ? reinterpret_cast<std::uint64_t>(from.packed.memory) : 0;
  to.packed_bytes = is_packed ? from.packed.bytes : ~std::uint64_t{0};
  to.packed_alignment = from.packed.alignment;
  return to;
}

plan_arguments arguments_of(const plan_request& request, const plan_target& target) {
  plan_arguments plan{};
  plan.source = side_of(request.source);
  plan.destination = side_of(request.destination);
  plan.count = request.count;
  plan.relation = request.relation;
  plan.kept_axes = request.kept_axes;
  plan.routes = request.routes;
  if (target.maps == nullptr) plan.routes.allowed = plan.routes.allowed.without(route::tensor_map);
  plan.rule = request.rule;
  plan.limits = {request.windows, request.window_count, tmap::detail::most_tensor_bytes(request.count)};
  plan.begins = target.begins;
  if (target.scales != nullptr) plan.scales = side_of(request.scales.tensors);
  plan.grid = request.scales.grid;
  return plan;
}

template <std::uint32_t Rank>
cudaError_t sum_packed(const plan_request& request, const plan_arguments& plan, const plan_target& target,
                       cudaStream_t stream) {
  const bool unpacks = plan.source.kind == side_kind::packed;
  const plan_side& packed = unpacks ? plan.source : plan.destination;
  const packed_size<Rank> size{unpacks ? plan.destination : plan.source, packed.packed_alignment, plan.limits, unpacks};
  return launch_inclusive_sum(size, reinterpret_cast<std::uint64_t*>(target.begins + 1), request.count, target.scratch,
                              target.scratch_bytes, stream);
}

template <std::uint32_t Rank>
cudaError_t plan_rank(const plan_request& request, const plan_target& target, cudaStream_t stream) {
  const plan_arguments plan = arguments_of(request, target);
  const plan_grid grid = grid_of(request.count);
  const launch_size size{grid.blocks, plan_threads};
  const plan_results results{target.tensors, target.ends,      static_cast<block_totals*>(target.scratch),
                             target.begins,  request.statuses, request.header,
                             target.queue,   request.faults,   target.scales};
  if (target.begins != nullptr) {
    const cudaError_t code = sum_packed<Rank>(request, plan, target, stream);
    if (code != cudaSuccess) return code;
  }
  const bool is_padded = request.relation == shape_relation::clipped;
  const auto kernel = is_padded                  ? plan_kernel<Rank, 1 + Rank>
                      : target.scales != nullptr ? plan_kernel<Rank, 1, true>
                                                 : plan_kernel<Rank, 1>;
  const cudaError_t code = launch_behind(kernel, size, stream, plan, results, grid.rounds);
  const bool has_maps = plan.routes.allowed.contains(route::tensor_map);
  if (code != cudaSuccess || (grid.blocks == 1 && !has_maps)) return code;
  const finish_arguments finish{results, target.maps, request.count, is_padded ? 1 + Rank : 1, grid.rounds};
  return has_maps
             ? launch_behind(finish_kernel<true>, size, stream, finish, request.source_map, request.destination_map)
             : launch_behind(finish_kernel<false>, size, stream, finish, request.source_map, request.destination_map);
}

}  // namespace

static_assert(sizeof(device::queue_counter) == queue_counter_bytes);

std::size_t plan_scratch_bytes(std::uint64_t planned_count) {
  const std::size_t totals =
      std::min<std::uint64_t>(most_blocks, planned_count / plan_threads + 1) * sizeof(block_totals);
  return std::max<std::size_t>(totals, inclusive_sum_scratch(planned_count));
}

cudaError_t launch_plan(const plan_request& request, const plan_target& target, cudaStream_t stream) {
  switch (request.rank) {
    case 1: return plan_rank<1>(request, target, stream);
    case 2: return plan_rank<2>(request, target, stream);
    case 3: return plan_rank<3>(request, target, stream);
    case 4: return plan_rank<4>(request, target, stream);
    default: return plan_rank<5>(request, target, stream);
  }
}

}  // namespace tmap::kernels
