// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks the arguments of a batch of maps on the host, before its kernel is enqueued, but never the
// contents of device memory. A source is checked after its template.

#include <tmap/encode_batch.hpp>
#include <tmap/error.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_source.hpp>

#include <cstdint>
#include <variant>

#include "lib/batch/run_arguments.hpp"
#include "lib/batch/source_arguments.hpp"
#include "lib/support/arguments.hpp"

namespace tmap {

inline void check_template(support::arguments& given, const map_template& base) {
  const support::argument name{"base"};
  given.range(base.spec.rank, 1, max_rank, name.member("spec").member("rank"));
  if (given) check_fields(given, base.fields, patch_everything(base.spec.rank), name.member("fields"));
}

inline void check_source(support::arguments& given, const map_template& base, const patch_array& source) {
  if (base.fields != patch_fields{}) given.pointer(source.patches, support::argument{"source"}.member("patches"));
}

template <class Columns>
void check_columns(support::arguments& given, const map_template& base, const Columns& source) {
  const support::argument name{"source"};
  const support::argument dims = name.member("global_dim");
  const support::argument strides = stride_columns(source, name);
  check_fields(given, base.fields, patch_extents(base.spec.rank), support::argument{"base"}.member("fields"));
  const auto check_column = [&](patch_fields field, const auto* column, const support::argument& of) {
    if (has_any(base.fields, field)) given.pointer(column, of);
  };
  check_column(patch_address, address_column(source), address_column(source, name));
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    check_column(patch_dim(axis), source.global_dim[axis], dims[axis]);
    if (axis + 1 < max_rank) check_column(patch_stride(axis), stride_column(source, axis), strides[axis]);
  }
}

inline void check_source(support::arguments& given, const map_template& base, const patch_columns& source) {
  check_columns(given, base, source);
}
inline void check_source(support::arguments& given, const map_template& base, const compact_columns& source) {
  check_columns(given, base, source);
}

inline void check_source(support::arguments& given, const map_template& base, const ragged_rows& source) {
  given.equal(bits_of(base.fields), bits_of(patch_address | patch_dim(base.spec.rank - 1)),
              support::argument{"base"}.member("fields"),
              "is {found:#x}; it must be {allowed:#x}, address and outermost dim, which rows change");
  const support::argument name{"source"};
  check_offsets(given, source.offsets, name.member("offsets"));
}

inline void check_source(support::arguments& given, const map_template& base, const tensor_source& source) {
  std::visit([&](const auto& from) { check_source(given, base, from); }, source);
}

/// Whether the source has sizes, which need a workspace for their running sum.
inline bool has_sizes(const tensor_source& source) {
  const auto* const rows = std::get_if<ragged_rows>(&source);
  return rows != nullptr && rows->offsets.format == offset_format::sizes;
}

/// Checks the workspace that a good source needs.
inline void check_scratch(support::arguments& given, const tensor_source& source, std::uint64_t count,
                          const encode_run& run) {
  if (!given || !has_sizes(source)) return;
  const result<std::uint64_t> needed = ragged_workspace_bytes(count, std::get<ragged_rows>(source).offsets.bytes);
  given.add(needed);
  if (!needed) return;
  check_scratch(given, run.where.scratch, *needed);
}

inline void check_encode_run(support::arguments& given, const encode_run& run) {
  check_run(given, run);
  const support::argument choices{"choices"};
  const bool asks = run.statuses != nullptr || run.header != nullptr || !run.windows.empty();
  if (run.choices.trusted && asks) {
    given.refuse(
        choices.member("trusted"),
        "skips the validation that statuses, header and windows need; it must be false if any of them is given");
  }
  given.enumerator(run.choices.published_by, publish::copy_fence, choices.member("published_by"));
}

/// Checks that this rank reaches the window of another one.
inline void check_reach(support::arguments& given, const peer_memory_ref& ref, std::uint32_t rank,
                        const support::argument& name) {
  if (ref.windows[rank] != 0) return;
  given.add(result<void>{failure{error{.code = status::no_peer_access,
                                       .found = rank,
                                       .argument = name.name(),
                                       .reason = "does not reach the window of rank {found}; maps with owners need a "
                                                 "window of `allocate`"}}});
}

/// Checks the owners of maps of peers, if there are some.
inline void check_owners(support::arguments& given, const map_template& base, const encode_run& run) {
  const map_owners& owners = run.choices.owners;
  if (owners.ranks == nullptr) return;
  const support::argument choices{"choices"};
  const support::argument name = choices.member("owners");
  const support::argument memory = name.member("memory");
  given.pointer(owners.ranks, name.member("ranks"));
  given.range(owners.memory.ranks, 1, max_group_ranks, memory.member("ranks"));
  if (given) given.at_most(owners.memory.rank, owners.memory.ranks - 1, memory.member("rank"));
  for (std::uint32_t i = 0; given && i < owners.memory.ranks; ++i) check_reach(given, owners.memory, i, memory);
  if (!has_any(base.fields, patch_address)) {
    given.refuse(support::argument{"base"}.member("fields"),
                 "is {found:#x}; maps with owners need the address, {allowed:#x}", bits_of(base.fields),
                 bits_of(patch_address));
  }
  if (!run.windows.empty()) given.refuse("windows", "has {found}; it must be empty with owners", run.windows.size(), 0);
  if (run.choices.trusted) given.refuse(choices.member("trusted"), "is true; it must be false with owners", 1, 0);
  if (run.choices.published_by != publish::stores) {
    given.refuse(choices.member("published_by"), "is {found}; it must be {allowed}, `publish::stores`, with owners",
                 static_cast<std::uint64_t>(run.choices.published_by), static_cast<std::uint64_t>(publish::stores));
  }
}

}  // namespace tmap
