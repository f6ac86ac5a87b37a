// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/plan.hpp"

#include <algorithm>
#include <limits>

namespace tmap::tool {
namespace {

/// The coordinates of a tile are signed 32-bit numbers.
constexpr std::uint64_t most_extent = std::numeric_limits<std::int32_t>::max();

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

/// Elements that make whole 16-byte units.
std::uint64_t round_to_unit(std::uint64_t elements, std::uint64_t unit) {
  return (elements + unit - 1) / unit * unit;
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

std::vector<std::uint32_t> choose_box(const shape_t& extents, dtype type, tmap::swizzle mode) {
  constexpr std::uint64_t tile_bytes = 16384;
  constexpr std::uint64_t most_box = 256;
  const std::uint64_t unit = 16 / bytes(type);
  const std::uint64_t span = swizzle_span_bytes(mode);
  const std::uint64_t widest = span == 0 ? most_box : std::min(most_box, span / bytes(type));
  std::vector<std::uint32_t> box;
  std::uint64_t room = tile_bytes / bytes(type);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const std::uint64_t wanted = axis == 0 ? round_to_unit(extents[0], unit) : extents[axis];
    const std::uint64_t size = std::min({wanted, axis == 0 ? widest : most_box, room});
    box.push_back(static_cast<std::uint32_t>(std::max<std::uint64_t>(size, 1)));
    room /= axis == 0 && span != 0 ? widest : box.back();  // a swizzled row takes a whole span
  }
  return box;
}

}  // namespace tmap::tool
