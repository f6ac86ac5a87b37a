// SPDX-License-Identifier: Apache-2.0
#include <tmap/encode.hpp>
#include <tmap/make_template.hpp>
#include <tmap/validate.hpp>

#include "lib/batch/source_arguments.hpp"
#include "lib/driver/large_mark.hpp"
#include "lib/spec/rule_error.hpp"
#include "lib/support/arguments.hpp"

namespace tmap {
namespace {

/// Aligned for every element type and interleave. No map with this address is used, because each
/// map's patch has its own.
constexpr std::uint64_t placeholder_address = 4096;

/// Returns the spec with the smallest legal value in each extent that patches change.
tensor_spec with_placeholders(tensor_spec spec, patch_fields fields) {
  if (has_any(fields, patch_address)) spec.global_address = placeholder_address;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    if (has_any(fields, patch_dim(axis))) spec.global_dim[axis] = axis == 0 ? detail::smallest_inner_dim(spec.type) : 1;
  }
  for (std::uint32_t index = 0; index + 1 < max_rank; ++index) {
    if (has_any(fields, patch_stride(index))) spec.global_stride_bytes[index] = detail::smallest_stride;
  }
  return spec;
}

/// Refuses fields beyond the rank. Validation reports a rank out of range.
result<void> check_changes(const tensor_spec& spec, patch_fields fields) {
  support::arguments given;
  const bool has_legal_rank = spec.rank >= 1 && spec.rank <= max_rank;
  if (has_legal_rank) check_fields(given, fields, patch_everything(spec.rank), "fields");
  return given.outcome();
}

}  // namespace

result<map_template> make_template(const tensor_spec& spec, patch_fields fields) {
  if (const result<void> checked = check_changes(spec, fields); !checked) return failure{checked.error()};
  const tensor_spec smallest = with_placeholders(spec, fields);
  const result<tensor_map> map = encode(smallest);
  if (!map) return failure{map.error()};
  return map_template{driver::without_large_mark(*map), smallest, fields};
}

result<map_template> make_zeroed_template(const tensor_spec& spec, patch_fields fields) {
  if (const result<void> checked = check_changes(spec, fields); !checked) return failure{checked.error()};
  tensor_spec smallest = with_placeholders(spec, fields);
  smallest.l2_promotion = l2_promotion::none;
  const violations found = validate(smallest);
  if (detail::has_error(found)) return failure{detail::error_of(status::rule_broken, found)};
  return map_template{tensor_map{}, smallest, fields};
}

}  // namespace tmap
