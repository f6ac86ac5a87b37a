// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/make_template.hpp>
#include <tmap/map_patch.hpp>

#include "support/random_spec.hpp"

// Patches for a template that visit the corners of every rule that a patch can break.

namespace tmap::testing {

inline map_patch patch_of(const tensor_spec& spec) {
  map_patch patch{};
  patch.global_address = spec.global_address;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    patch.global_dim[axis] = spec.global_dim[axis];
    if (axis + 1 < max_rank) patch.global_stride_bytes[axis] = spec.global_stride_bytes[axis];
    patch.box_dim[axis] = spec.box_dim[axis];
    patch.element_stride[axis] = static_cast<std::uint16_t>(spec.element_stride[axis]);
  }
  return patch;
}

class random_patch_source {
 public:
  explicit random_patch_source(std::uint64_t seed) : specs_{seed} {}

  /// Returns a template that allows any subset of the fields to change. Needs no driver.
  map_template base() {
    const tensor_spec spec = specs_.legal();
    const patch_fields every = patch_everything(spec.rank);
    const patch_fields fields = random().one_in(2) ? every : every & static_cast<patch_fields>(random().bits());
    return make_zeroed_template(spec, fields).value();
  }

  /// Returns a patch. About half break no rule, the others break one or a few.
  map_patch any(const map_template& base) {
    map_patch patch = patch_of(specs_.with_modes_of(base.spec));
    if (random().one_in(2)) return patch;
    for (std::uint32_t changes = 1 + random().below32(2); changes > 0; --changes) disturb(patch);
    return patch;
  }

  random_source& random() { return specs_.random(); }

 private:
  void disturb(map_patch& patch) {
    const std::uint32_t axis = random().below32(max_rank);
    switch (random().below(5)) {
      case 0: patch.global_address = corner({0, 8, 16, (1ull << 57) - 16, 1ull << 57, 1ull << 63}); break;
      case 1: patch.global_dim[axis] = corner({0, 1, 1ull << 31, (1ull << 31) + 1, 1ull << 32, ~0ull}); break;
      case 2: patch.global_stride_bytes[axis % 4] = corner({0, 8, 16, (1ull << 40) - 16, 1ull << 40, ~0ull}); break;
      case 3: patch.box_dim[axis] = static_cast<std::uint32_t>(corner({0, 1, 256, 257, 1ull << 31, ~0ull})); break;
      default: patch.element_stride[axis] = static_cast<std::uint16_t>(corner({0, 1, 8, 9, 256, ~0ull})); break;
    }
  }

  std::uint64_t corner(std::initializer_list<std::uint64_t> corners) {
    return random().one_in(2) ? random().pick(corners) : random().of_random_length(64);
  }

  random_spec_source specs_;
};

}  // namespace tmap::testing
