// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_template.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "apps/samples/group_maps/group.hpp"
#include "apps/support/device_array.hpp"

namespace group_maps {

/// Owns groups in device memory and runs the kernel that walks them. Ends the program if CUDA
/// fails.
class grouped_tensor {
 public:
  /// Makes groups with these numbers of rows, at least one of which is not 0. `columns` is a
  /// multiple of 64, at most `most_columns`.
  grouped_tensor(const std::vector<std::uint32_t>& rows, std::uint32_t columns, std::uint32_t blocks);

  const std::vector<group>& groups() const { return groups_; }
  /// Returns the largest number of groups that any block meets. It needs a map for each.
  std::uint32_t most_groups_of_a_block() const;

  /// Encodes a map per group, for walks with `made_ahead` that follow on the stream.
  void make_maps(cudaStream_t stream) const;
  void walk(map_way way, cudaStream_t stream) const;

  /// Overwrites all sums and maps.
  void poison() const;
  /// Returns the sums of each tile, one per consuming warp. Waits for all work.
  std::vector<part_sum> sums() const { return sums_.read(); }

 private:
  std::uint32_t blocks_;
  std::uint32_t columns_;
  tmap::apps::device_array<std::uint16_t> elements_;
  std::vector<group> groups_;
  tmap::apps::device_array<group> device_groups_;
  tmap::apps::device_array<tmap::map_patch> patches_;
  tmap::apps::device_array<tmap::tensor_map> maps_;
  tmap::apps::device_array<tmap::tensor_map> own_maps_;
  tmap::apps::device_array<part_sum> sums_;
  tmap::tensor_map whole_;
  tmap::map_template base_;
};

}  // namespace group_maps
