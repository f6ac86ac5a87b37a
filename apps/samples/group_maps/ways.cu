// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/group_maps/ways.hpp"

#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>

#include <algorithm>
#include <numeric>

#include "apps/samples/group_maps/map_ways.cuh"
#include "apps/samples/group_maps/walk_kernel.cuh"
#include "apps/samples/group_maps/workload.hpp"
#include "apps/support/require.hpp"

namespace group_maps {
namespace {

using tmap::apps::require;

__global__ void fill_elements(std::uint16_t* elements, std::uint64_t count, std::uint32_t columns) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    elements[i] = element(static_cast<std::uint32_t>(i / columns), static_cast<std::uint32_t>(i % columns));
  }
}

std::uint64_t count_elements(const std::vector<std::uint32_t>& rows, std::uint32_t columns) {
  require(columns != 0 && columns % box_columns == 0 && columns <= most_columns);
  return std::accumulate(rows.begin(), rows.end(), std::uint64_t{0}) * columns;
}

std::vector<tmap::map_patch> patches_of(const std::vector<group>& groups) {
  std::vector<tmap::map_patch> patches(groups.size());
  std::transform(groups.begin(), groups.end(), patches.begin(), patch_of);
  return patches;
}

/// Returns the spec of the tensor that contains all groups' rows.
tmap::tensor_spec whole_spec(const group& first, const group& last) {
  const std::uint64_t dims[] = {first.columns, std::uint64_t{last.first_row} + last.rows};
  const std::uint32_t box[] = {box_columns, box_rows};
  tmap::tensor_spec spec = tmap::packed_spec(tmap::element_type::bf16, first.address, dims, box);
  spec.l2_promotion = tmap::l2_promotion::bytes_128;
  return spec;
}

template <class Maps>
void launch(const walk_arguments& in, std::uint32_t blocks, cudaStream_t stream) {
  constexpr int bytes = sizeof(block_memory);
  require(cudaFuncSetAttribute(walk_groups<Maps>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  walk_groups<Maps><<<blocks, walk_threads, bytes, stream>>>(in);
  require(cudaGetLastError());
}

}  // namespace

grouped_tensor::grouped_tensor(const std::vector<std::uint32_t>& rows, std::uint32_t columns, std::uint32_t blocks)
    : blocks_(blocks),
      columns_(columns),
      elements_(count_elements(rows, columns)),
      groups_(make_groups(rows, columns, reinterpret_cast<std::uint64_t>(elements_.get()))),
      device_groups_(groups_),
      patches_(patches_of(groups_)),
      maps_(groups_.size()),
      own_maps_(blocks * own_maps),
      sums_(groups_.back().end_tile * consumer_warps) {
  const tmap::tensor_spec spec = whole_spec(groups_.front(), groups_.back());
  whole_ = tmap::apps::value_of(tmap::encode(spec));
  base_ = tmap::apps::value_of(tmap::make_template(spec, group_fields));
  fill_elements<<<1024, 256>>>(elements_.get(), elements_.size(), columns_);
  require(cudaGetLastError());
  poison();
}

std::uint32_t grouped_tensor::most_groups_of_a_block() const {
  const group_list list{groups_.data(), static_cast<std::uint32_t>(groups_.size()), groups_.back().end_tile};
  std::uint32_t most = 0;
  for (std::uint32_t block = 0; block < blocks_; ++block) {
    std::uint32_t met = 0;
    for (group_walk walk(list, list.share(block, blocks_)); !walk.is_done(); walk.next_group()) {
      walk.read_ahead();
      ++met;
    }
    most = std::max(most, met);
  }
  return most;
}

void grouped_tensor::make_maps(cudaStream_t stream) const {
  require(tmap::encode_batch(base_, tmap::patch_array{patches_.get()}, maps_.get(), maps_.size(), {stream}));
}

void grouped_tensor::walk(map_way way, cudaStream_t stream) const {
  const group_list list{device_groups_.get(), static_cast<std::uint32_t>(groups_.size()), groups_.back().end_tile};
  const walk_arguments in{whole_, base_, maps_.get(), own_maps_.get(), list, columns_, sums_.get()};
  switch (way) {
    case map_way::one_static_map: return launch<static_map>(in, blocks_, stream);
    case map_way::made_ahead: return launch<map_made_ahead>(in, blocks_, stream);
    case map_way::changed_here: return launch<map_changed_here>(in, blocks_, stream);
  }
}

void grouped_tensor::poison() const {
  constexpr int poison_byte = 0xff;
  maps_.fill(poison_byte);
  own_maps_.fill(poison_byte);
  sums_.fill(poison_byte);
}

}  // namespace group_maps
