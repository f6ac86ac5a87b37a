// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/row_walk.hpp"

#include <algorithm>

namespace tmap::simulator {
namespace {

/// 0 <= corner + k * step < dim, solved for k in [0, count).
inside_range solve(std::int64_t corner, std::uint32_t step, std::uint32_t count, std::uint64_t dim) {
  const std::int64_t first = corner >= 0 ? 0 : (-corner + step - 1) / step;
  const std::int64_t room = static_cast<std::int64_t>(dim) - corner;
  const std::int64_t last = room <= 0 ? 0 : (room + step - 1) / step;
  const std::int64_t most = count;
  return {static_cast<std::uint32_t>(std::min(first, most)), static_cast<std::uint32_t>(std::min(last, most))};
}

std::uint32_t unit_bytes_of(const tensor_spec& spec) {
  switch (spec.interleave) {
    case interleave::bytes_16: return 16;
    case interleave::bytes_32: return 32;
    default: return static_cast<std::uint32_t>(element_bytes(spec.type));
  }
}

}  // namespace

box_geometry::box_geometry(const tensor_spec& spec, cuda::std::span<const std::int32_t> coordinates)
    : base_{spec.global_address}, unit_bytes_{unit_bytes_of(spec)} {
  stride_[0] = unit_bytes_;
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    corner_[axis] = coordinates[axis];
    count_[axis] = tile_dim(spec, axis);
    if (axis != 0 || spec.interleave != interleave::none) step_[axis] = spec.element_stride[axis];
    if (axis != 0) stride_[axis] = spec.global_stride_bytes[axis - 1];
    inside_[axis] = solve(corner_[axis], step_[axis], count_[axis], spec.global_dim[axis]);
  }
}

bool box_geometry::leaves_tensor() const {
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    if (inside_[axis].first != 0 || inside_[axis].last != count_[axis]) return true;
  }
  return false;
}

}  // namespace tmap::simulator
