// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>

#include <cuda/std/span>

#include <cstdint>

namespace tmap::simulator {

/// Steps [first, last) of one axis of a box that lie inside the tensor.
struct inside_range {
  std::uint32_t first;
  std::uint32_t last;

  bool empty() const { return first >= last; }
};

/// A box laid over a tensor: which steps of each axis lie inside, and where each row begins. A *unit* is what
/// dimension 0 counts: an element, or 16 or 32 bytes with an interleave.
class box_geometry {
 public:
  box_geometry(const tensor_spec& spec, cuda::std::span<const std::int32_t> coordinates);

  std::uint64_t base() const { return base_; }
  std::uint32_t unit_bytes() const { return unit_bytes_; }
  std::uint32_t units() const { return count_[0]; }
  std::uint32_t unit_step() const { return step_[0]; }
  std::uint32_t row_bytes() const { return count_[0] * unit_bytes_; }
  inside_range inside_units() const { return inside_[0]; }
  bool leaves_tensor() const;

  std::uint64_t rows() const { return std::uint64_t{count_[1]} * count_[2] * count_[3] * count_[4]; }

  /// Calls visit(row, inside, address) for each row in tile order; `address` is where unit 0 of the row would be
  /// (its coordinate may be negative: only the sum with an inside unit's offset counts). Stops when visit says false.
  template <class Visit>
  void for_each_row(Visit&& visit) const;

 private:
  bool is_inside(std::uint32_t axis, std::uint32_t k) const {
    return k >= inside_[axis].first && k < inside_[axis].last;
  }
  std::uint64_t address_of(const std::uint32_t (&index)[max_rank]) const;

  std::uint64_t base_;
  std::uint32_t unit_bytes_;
  std::int64_t corner_[max_rank]{};
  std::uint32_t count_[max_rank]{1, 1, 1, 1, 1};
  std::uint32_t step_[max_rank]{1, 1, 1, 1, 1};
  std::uint64_t stride_[max_rank]{};
  inside_range inside_[max_rank]{{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}};
};

template <class Visit>
void box_geometry::for_each_row(Visit&& visit) const {
  std::uint32_t index[max_rank]{};
  const std::uint64_t total = rows();
  for (std::uint64_t row = 0; row < total; ++row) {
    bool inside = true;
    for (std::uint32_t axis = 1; axis < max_rank; ++axis) inside &= is_inside(axis, index[axis]);
    if (!visit(row, inside, inside ? address_of(index) : 0)) return;
    for (std::uint32_t axis = 1; axis < max_rank && ++index[axis] == count_[axis]; ++axis) index[axis] = 0;
  }
}

}  // namespace tmap::simulator
