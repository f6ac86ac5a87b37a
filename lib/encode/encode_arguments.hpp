// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the host can check of a batch of maps before its kernel is enqueued: arguments, never what device memory holds.
// A source is checked after its template.

#include <tmap/encode_batch.hpp>
#include <tmap/error.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>

#include <cstdint>

#include "lib/batch/source_arguments.hpp"
#include "lib/batch/workspace.hpp"
#include "lib/support/arguments.hpp"
#include "lib/support/checking.hpp"

namespace tmap {

inline void check_template(support::arguments& given, const map_template& base) {
  const support::argument name{"base"};
  given.range(base.spec.rank, 1, max_rank, name.member("spec").member("rank"));
  if (given) check_fields(given, base.fields, patch_everything(base.spec.rank), name.member("fields"));
}

inline void check_source(support::arguments& given, const map_template& base, const patch_array& source) {
  if (base.fields != 0) given.pointer(source.patches, support::argument{"source"}.member("patches"));
}

template <class Columns>
void check_source(support::arguments& given, const map_template& base, const Columns& source) {
  const support::argument name{"source"};
  const support::argument dims = name.member("global_dim");
  const support::argument strides = stride_columns(source, name);
  check_fields(given, base.fields, patch_extents(base.spec.rank), support::argument{"base"}.member("fields"));
  const auto check_column = [&](patch_fields field, const auto* column, const support::argument& of) {
    if ((base.fields & field) != 0) given.pointer(column, of);
  };
  check_column(patch_address, address_column(source), address_column(source, name));
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    check_column(patch_dim(axis), source.global_dim[axis], dims[axis]);
    if (axis + 1 < max_rank) check_column(patch_stride(axis), stride_column(source, axis), strides[axis]);
  }
}

template <class Offset>
void check_source(support::arguments& given, const map_template& base, const ragged_rows<Offset>& source) {
  given.equal(base.fields, patch_address | patch_dim(base.spec.rank - 1), support::argument{"base"}.member("fields"),
              "is {found:#x}; it must be {allowed:#x}, address and outermost dim, which rows change");
  check_offsets(given, source, "source");
}

/// `sizes` need room for their running sum; the other formats need none.
template <class Offset>
void check_sums(support::arguments& given, const ragged_rows<Offset>& source, std::uint64_t count) {
  if (!given || source.format != offset_format::sizes) return;
  const support::argument name{"source"};
  const result<std::uint64_t> needed = ragged_workspace_bytes(count, sizeof(Offset));
  given.add(needed);
  if (!needed) return;
  check_workspace(given, source.workspace, source.workspace_bytes, *needed,
                  {name.member("workspace"), name.member("workspace_bytes")});
}

/// `name`: what the call has these options in.
inline void check_options(support::arguments& given, const encode_options& options, const support::argument& name) {
  const bool asks = options.statuses != nullptr || options.header != nullptr || options.totals != nullptr ||
                    options.window_count != 0;
  if (options.trusted && asks) {
    given.refuse(name.member("trusted"),
                 "leaves out what statuses, header, totals and windows need; it must be false beside any of them");
  }
  support::check_fault_check(given, options.check, name.member("check"));
  given.enumerator(options.published_by, publish::copy_fence, name.member("published_by"));
  check_windows(given, options, name);
  given.optional_pointer(options.statuses, name.member("statuses"));
  given.optional_pointer(options.totals, name.member("totals"));
  given.optional_pointer(options.header, name.member("header"));
}

}  // namespace tmap
