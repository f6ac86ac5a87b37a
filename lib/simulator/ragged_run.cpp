// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_run.hpp"

#include <tmap/encode_batch.hpp>

#include <algorithm>

#include "lib/support/checking.hpp"

namespace tmap::simulator {
namespace {

struct source_check {
  std::uint32_t rank;
  std::uint32_t element_bytes;

  bool operator()(const patch_array& source) const { return is_array(source.patches); }
  bool operator()(const patch_columns& source) const {
    return is_array(source.global_address) && has_extents(source.global_dim, source.global_stride_bytes);
  }
  bool operator()(const compact_columns& source) const {
    return is_array(source.address_units) && has_extents(source.global_dim, source.global_stride_units);
  }
  template <class Offset>
  bool operator()(const ragged_rows<Offset>& source) const {
    return is_array(source.offsets) && source.format <= offset_format::sizes &&
           (rank > 1 || source.row_pitch_bytes == element_bytes);
  }

  /// Strides may be null.
  template <class Column>
  bool has_extents(const Column* dims, const Column* strides) const {
    return std::all_of(dims, dims + rank, [](Column column) { return is_array(column); }) &&
           std::all_of(strides, strides + rank - 1, [](Column column) { return is_optional_array(column); });
  }
};

}  // namespace

result<void> check_batch(const tensor_batch& batch) {
  const bool has_shape = batch.rank >= 1 && batch.rank <= max_rank && batch.element_bytes >= 1 &&
                         batch.element_bytes <= 16 && batch.count <= max_batch;
  if (!has_shape || (batch.count != 0 && !std::visit(source_check{batch.rank, batch.element_bytes}, batch.tensors)))
    return bad_argument();
  return {};
}

result<void> check_options(const ragged::options& with) {
  if (const auto checked = support::is_checked(with.check); !checked) return failure(checked.error());
  const bool has_policy = !with.policy || *with.policy <= route_policy::force;
  const bool has_windows = with.window_count == 0 || is_array(with.windows);
  const bool has_places = is_optional_array(with.statuses) && is_optional_array(with.header);
  return has_policy && has_windows && has_places ? result<void>{} : bad_argument();
}

result<void> check_sides(const tensor_batch& source, const tensor_batch& destination, std::uint32_t from,
                         std::uint32_t to) {
  for (const tensor_batch* side : {&source, &destination}) {
    if (const auto checked = check_batch(*side); !checked) return checked;
  }
  const bool has_bytes = from == 0 ? source.element_bytes == destination.element_bytes
                                   : source.element_bytes == from && destination.element_bytes == to;
  if (source.count != destination.count || source.rank != destination.rank || !has_bytes) return bad_argument();
  return {};
}

result<route_options> routes_of(const ragged::options& with) {
  if (const auto checked = check_options(with); !checked) return failure{checked.error()};
  if (with.policy) return route_options{*with.policy, with.allowed};
  const auto policy = policy_from_environment();
  if (!policy) return failure{policy.error()};
  return route_options{*policy, with.allowed};
}

}  // namespace tmap::simulator
