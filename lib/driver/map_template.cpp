// SPDX-License-Identifier: Apache-2.0
#include <tmap/encode.hpp>
#include <tmap/make_template.hpp>
#include <tmap/validate.hpp>

#include "lib/spec/rule_error.hpp"

namespace tmap {
namespace {

/// Aligned for every element type and interleave. No map with this address is ever used: each map's patch has its own.
constexpr std::uint64_t placeholder_address = 4096;

/// The spec with the smallest legal value in each extent that the maps bring themselves.
tensor_spec with_placeholders(tensor_spec spec, patch_fields fields) {
  if ((fields & patch_address) != 0) spec.global_address = placeholder_address;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    if ((fields & patch_dim(axis)) != 0) spec.global_dim[axis] = axis == 0 ? detail::smallest_inner_dim(spec.type) : 1;
  }
  for (std::uint32_t index = 0; index + 1 < max_rank; ++index) {
    if ((fields & patch_stride(index)) != 0) spec.global_stride_bytes[index] = detail::smallest_stride;
  }
  return spec;
}

/// A field beyond the rank has no place in a map. A rank out of range is left to validation.
bool names_other_axes(const tensor_spec& spec, patch_fields fields) {
  const bool legal_rank = spec.rank >= 1 && spec.rank <= max_rank;
  return legal_rank && (fields & ~patch_everything(spec.rank)) != 0;
}

}  // namespace

result<map_template> make_template(const tensor_spec& spec, patch_fields fields) {
  if (names_other_axes(spec, fields)) return failure{{.code = status::invalid_argument, .found = fields}};
  const tensor_spec smallest = with_placeholders(spec, fields);
  const result<tensor_map> map = encode(smallest);
  if (!map) return failure{map.error()};
  return map_template{*map, smallest, fields};
}

result<map_template> make_zeroed_template(const tensor_spec& spec, patch_fields fields) {
  if (names_other_axes(spec, fields)) return failure{{.code = status::invalid_argument, .found = fields}};
  tensor_spec smallest = with_placeholders(spec, fields);
  smallest.l2_promotion = l2_promotion::none;
  const violations found = validate(smallest);
  if (detail::has_error(found)) return failure{detail::error_of(status::rule_broken, found)};
  return map_template{tensor_map{}, smallest, fields};
}

}  // namespace tmap
