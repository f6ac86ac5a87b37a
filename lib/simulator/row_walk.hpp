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

/// A box laid over a tensor: which steps of each axis lie inside, and where each row begins. A
/// *unit* is what dimension 0 counts: an element, or 16 or 32 bytes with an interleave.
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

  /// Calls visit(row, inside, address) for each row in tile order, until visit returns false.
  /// `address` is where unit 0 of the row would be. Its coordinate may be negative, so add the
  /// offset of an inside unit before use.
  template <class Visit>
  void for_each_row(Visit&& visit) const;

 private:
  __extension__ typedef __int128 int128;

  bool is_inside(std::uint32_t axis, std::uint32_t k) const {
    return k >= inside_[axis].first && k < inside_[axis].last;
  }
  int128 offset(std::uint32_t axis, std::uint32_t k) const {
    return static_cast<int128>(corner_[axis] + std::int64_t{k} * step_[axis]) * static_cast<int128>(stride_[axis]);
  }
  /// Extents reach 2^73, further than addresses. All that is beyond becomes the last address, which
  /// is never mapped.
  static std::uint64_t as_address(int128 sum) {
    constexpr auto top = static_cast<int128>(~std::uint64_t{0});
    return sum > top ? ~std::uint64_t{0} : static_cast<std::uint64_t>(sum);
  }

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
  const int128 first_unit = static_cast<int128>(base_) + offset(0, 0);
  const int128 row_step = static_cast<int128>(step_[1]) * static_cast<int128>(stride_[1]);
  std::uint32_t index[max_rank]{};
  std::uint64_t row = 0;
  do {
    bool inside = true;
    int128 address = first_unit + offset(1, 0);
    for (std::uint32_t axis = 2; axis < max_rank; ++axis) {
      inside &= is_inside(axis, index[axis]);
      address += offset(axis, index[axis]);
    }
    for (std::uint32_t k = 0; k < count_[1]; ++k, ++row, address += row_step) {
      if (!visit(row, inside && is_inside(1, k), as_address(address))) return;
    }
    for (std::uint32_t axis = 2; axis < max_rank && ++index[axis] == count_[axis]; ++axis) index[axis] = 0;
  } while (row < rows());
}

}  // namespace tmap::simulator
