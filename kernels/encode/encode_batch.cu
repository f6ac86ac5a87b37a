// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>

#include <algorithm>
#include <variant>

#include "kernels/encode/counting_guard.cuh"
#include "kernels/launch.hpp"
#include "kernels/launch_behind.hpp"
#include "kernels/load_kernel.hpp"

namespace tmap::kernels {
namespace {

constexpr std::uint32_t block_warps = 4;
constexpr std::uint32_t block_threads = block_warps * device::warp_lanes;

// The safe empty maps of this library point to this page, on each device. Loading the module zeroes
// it.
__device__ device::guard_page library_page;

template <class Shape, publish How, class Source>
__global__ void __launch_bounds__(block_threads)
    encode_kernel(const __grid_constant__ map_template base, const __grid_constant__ Source source,
                  const __grid_constant__ encode_terms terms, tensor_map* slots, std::uint64_t count,
                  std::uint32_t maps_per_warp, const __grid_constant__ fault_sink faults) {
  __shared__ device::warp_stage stages[block_warps];
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  const std::uint64_t first = (std::uint64_t{blockIdx.x} * block_warps + warp) * maps_per_warp;
  // A kernel that depends on this one may start now, and waits for its end before it reads a slot.
  // If each warp makes more than one map, blocks that start early would take room from blocks with
  // work.
  if (maps_per_warp == 1) cudaTriggerProgrammaticLaunchCompletion();
  if (first >= count) return;
  const std::uint64_t left = count - first;
  const std::uint32_t maps = left < maps_per_warp ? static_cast<std::uint32_t>(left) : maps_per_warp;
  device::warp_encoder encoder(base, stages[warp], Shape{});
  // This kernel starts early in the same way: nothing above reads or writes memory that another
  // kernel writes.
  cudaGridDependencySynchronize();
  const auto read = [&](std::uint64_t i) { return source.read(i, Shape::fields(base)); };
  encoder.compose(read, first, maps, counting_guard(library_page, terms.statuses, terms_for(terms, source), faults));
  encoder.publish_in(slots + first, maps, How);
}

/// One batch of any source, after all checks.
struct encode_job {
  const encode_plan& plan;
  const map_template& base;
  const encode_terms& terms;
  tensor_map* slots;
  std::uint64_t count;
  cudaStream_t stream;
  const fault_sink& faults;
  const map_owners& owners;
};

template <class Shape, publish How = publish::stores, class Source>
cudaError_t launch_shape(const encode_job& job, const Source& source) {
  const std::uint64_t block_maps = std::uint64_t{block_warps} * job.plan.maps_per_warp;
  const auto blocks = static_cast<std::uint32_t>((job.count + block_maps - 1) / block_maps);
  return launch_behind(encode_kernel<Shape, How, Source>, {blocks, block_threads}, job.stream, job.base, source,
                       job.terms, job.slots, job.count, job.plan.maps_per_warp, job.faults);
}

template <std::uint32_t Rank>
using extents_shape = device::fixed_shape<Rank, patch_extents(Rank)>;
template <std::uint32_t Rank>
using every_field_shape = device::fixed_shape<Rank, patch_everything(Rank)>;
template <std::uint32_t Rank>
using rows_shape = device::fixed_shape<Rank, patch_address | patch_dim(Rank - 1)>;

template <template <std::uint32_t> class Shape, class Source>
cudaError_t launch_fixed(const encode_job& job, const Source& source) {
  switch (job.base.spec.rank) {
    case 1: return launch_shape<Shape<1>>(job, source);
    case 2: return launch_shape<Shape<2>>(job, source);
    case 3: return launch_shape<Shape<3>>(job, source);
    case 4: return launch_shape<Shape<4>>(job, source);
    default: return launch_shape<Shape<5>>(job, source);
  }
}

/// Returns whether the kernels of fixed shapes cannot do the job. They need a template of
/// `make_template`, and publish by stores.
bool needs_any_shape(const encode_job& job) {
  return job.base.map == tensor_map{} || job.plan.published_by != publish::stores;
}

template <class Source>
cudaError_t launch_any(const encode_job& job, const Source& source) {
  return job.plan.published_by == publish::stores ? launch_shape<device::any_shape>(job, source)
                                                  : launch_shape<device::any_shape, publish::copy_fence>(job, source);
}

/// Maps of peers have one kernel for all shapes.
template <class Reader>
cudaError_t launch_peers(const encode_job& job, const Reader& reader) {
  return launch_shape<device::any_shape>(job, device::peer_reader<Reader>(reader, job.owners));
}

/// For sources that cannot change boxes.
template <class Source>
cudaError_t launch_columns(const encode_job& job, const Source& source) {
  if (job.owners.ranks != nullptr) return launch_peers(job, source);
  const bool is_plain = !needs_any_shape(job) && job.base.fields == patch_extents(job.base.spec.rank);
  return is_plain ? launch_fixed<extents_shape>(job, source) : launch_any(job, source);
}

template <class Source>
cudaError_t launch_rows(const encode_job& job, const Source& source) {
  if (job.owners.ranks != nullptr) return launch_peers(job, source);
  return needs_any_shape(job) ? launch_any(job, source) : launch_fixed<rows_shape>(job, source);
}

/// Launches the kernel for the source that it is called with.
struct source_launch {
  const encode_job& job;
  const std::int64_t* begins;

  cudaError_t operator()(const patch_array& source) const {
    const device::patch_array_reader reader(source, job.base.fields);
    const bool has_every_field = job.base.fields == patch_everything(job.base.spec.rank);
    const bool has_owners = job.owners.ranks != nullptr;
    if (!needs_any_shape(job) && has_every_field && !has_owners) return launch_fixed<every_field_shape>(job, reader);
    return launch_columns(job, reader);
  }
  cudaError_t operator()(const patch_columns& source) const {
    return launch_columns(job, device::patch_columns_reader(source, job.base.fields));
  }
  cudaError_t operator()(const compact_columns& source) const {
    return launch_columns(job, device::compact_columns_reader(source, job.base.fields));
  }
  cudaError_t operator()(const ragged_rows& source) const {
    return source.offsets.bytes == sizeof(std::int32_t) ? launch_typed<std::int32_t>(source)
                                                        : launch_typed<std::int64_t>(source);
  }

 private:
  template <class Offset>
  cudaError_t launch_typed(const ragged_rows& source) const {
    return launch_rows(job, device::ragged_rows_reader<Offset>(device::typed_rows_of<Offset>(source), begins));
  }
};

__global__ void reset_header_kernel(batch_header* header) {
  *header = batch_header{};
}

template <template <std::uint32_t> class Shape, class Source>
cudaError_t load_fixed() {
  cudaError_t code = load(encode_kernel<Shape<1>, publish::stores, Source>);
  if (code == cudaSuccess) code = load(encode_kernel<Shape<2>, publish::stores, Source>);
  if (code == cudaSuccess) code = load(encode_kernel<Shape<3>, publish::stores, Source>);
  if (code == cudaSuccess) code = load(encode_kernel<Shape<4>, publish::stores, Source>);
  if (code == cudaSuccess) code = load(encode_kernel<Shape<5>, publish::stores, Source>);
  return code;
}

template <class Source>
cudaError_t load_any() {
  cudaError_t code = load(encode_kernel<device::any_shape, publish::stores, Source>);
  if (code == cudaSuccess) code = load(encode_kernel<device::any_shape, publish::stores, device::peer_reader<Source>>);
  return code == cudaSuccess ? load(encode_kernel<device::any_shape, publish::copy_fence, Source>) : code;
}

template <class Source>
cudaError_t load_columns() {
  const cudaError_t code = load_any<Source>();
  return code == cudaSuccess ? load_fixed<extents_shape, Source>() : code;
}

template <class Offset>
cudaError_t load_rows() {
  const cudaError_t code = load_any<device::ragged_rows_reader<Offset>>();
  return code == cudaSuccess ? load_fixed<rows_shape, device::ragged_rows_reader<Offset>>() : code;
}

}  // namespace

encode_plan plan_encode(std::uint64_t count, std::uint32_t multiprocessors) {
  constexpr std::uint64_t warps_per_multiprocessor = 4;
  constexpr std::uint64_t most = 16;
  const std::uint64_t warps = multiprocessors * warps_per_multiprocessor;
  return {static_cast<std::uint32_t>(std::clamp<std::uint64_t>((count + warps - 1) / warps, 1, most))};
}

cudaError_t launch_header_reset(batch_header* header, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 1;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, reset_header_kernel, header);
}

cudaError_t launch_encode(const encode_plan& plan, const map_template& base, const tensor_source& source,
                          const std::int64_t* begins, tensor_map* slots, std::uint64_t count, cudaStream_t stream,
                          const encode_terms& terms, const fault_sink& faults, const map_owners& owners) {
  const encode_job job{plan, base, terms, slots, count, stream, faults, owners};
  return std::visit(source_launch{job, begins}, source);
}

cudaError_t load_encode_kernels() {
  cudaError_t code = load(reset_header_kernel);
  if (code == cudaSuccess) code = load_fixed<every_field_shape, device::patch_array_reader>();
  if (code == cudaSuccess) code = load_columns<device::patch_array_reader>();
  if (code == cudaSuccess) code = load_columns<device::patch_columns_reader>();
  if (code == cudaSuccess) code = load_columns<device::compact_columns_reader>();
  if (code == cudaSuccess) code = load_rows<std::int32_t>();
  if (code == cudaSuccess) code = load_rows<std::int64_t>();
  if (code == cudaSuccess) code = load_running_sum_kernels();
  return code;
}

}  // namespace tmap::kernels
