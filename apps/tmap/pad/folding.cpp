// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/plan.hpp"

#include <algorithm>

namespace tmap::tool {
namespace {

/// The limit of an operation for one dim (`ragged::fault`).
constexpr std::uint64_t most_extent = std::uint64_t{1} << 40;

std::uint64_t extent(const shape_t& shape, axis_run run) {
  std::uint64_t product = 1;
  for (std::uint32_t axis = run.first; axis <= run.last; ++axis) product *= shape[axis];
  return product;
}

bool equal_everywhere(const std::vector<shape_t>& shapes, const shape_t& batch, std::uint32_t axis) {
  return std::all_of(shapes.begin(), shapes.end(), [&](const shape_t& shape) { return shape[axis] == batch[axis]; });
}

bool fits_one_axis(const std::vector<shape_t>& shapes, const shape_t& batch, axis_run run) {
  const auto fits = [&](const shape_t& shape) {
    return shape[run.last] == 0 || extent(shape, {run.first, run.last - 1}) <= most_extent / shape[run.last];
  };
  return fits(batch) && std::all_of(shapes.begin(), shapes.end(), fits);
}

}  // namespace

std::vector<std::vector<std::size_t>> group(const std::vector<tensor>& tensors) {
  const auto rank = [](const tensor& t) { return std::max<std::size_t>(t.shape.size(), 1); };
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<std::size_t>& members) {
      const tensor& first = tensors[members.front()];
      return first.type == tensors[i].type && first.picture == tensors[i].picture && rank(first) == rank(tensors[i]);
    });
    if (same == groups.end()) {
      groups.push_back({i});
    } else {
      same->push_back(i);
    }
  }
  return groups;
}

shape_t batch_shape(const std::vector<shape_t>& shapes, const plan_options& options) {
  if (options.crop.size() == shapes.front().size()) return options.crop;
  shape_t batch = shapes.front();
  for (const shape_t& shape : shapes) {
    for (std::size_t axis = 0; axis < batch.size(); ++axis) {
      batch[axis] = options.crop_to_smallest ? std::min(batch[axis], shape[axis]) : std::max(batch[axis], shape[axis]);
    }
  }
  return batch;
}

std::vector<axis_run> fold(const std::vector<shape_t>& shapes, const shape_t& batch) {
  std::vector<axis_run> runs;
  for (std::uint32_t axis = 0; axis < batch.size(); ++axis) {
    const bool joins = !runs.empty() && equal_everywhere(shapes, batch, axis) &&
                       fits_one_axis(shapes, batch, {runs.back().first, axis});
    if (joins) runs.back().last = axis;
    if (!joins) runs.push_back({axis, axis});
  }
  return runs;
}

shape_t innermost_first(const shape_t& shape, const std::vector<axis_run>& folding) {
  shape_t extents;
  for (auto run = folding.rbegin(); run != folding.rend(); ++run) extents.push_back(extent(shape, *run));
  return extents;
}

}  // namespace tmap::tool
