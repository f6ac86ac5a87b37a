// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/convert_ragged.hpp"

#include <algorithm>
#include <iterator>

#include "lib/interop/bad_item.hpp"
#include "lib/interop/convert_source.hpp"

namespace tmap::interop {
namespace {

template <class Enum>
constexpr bool same(int number, Enum value) {
  return number == static_cast<int>(value);
}
static_assert(same(TMAP_ROUTE_TENSOR_MAP, route::tensor_map) && same(TMAP_ROUTE_BULK, route::bulk));
static_assert(same(TMAP_ROUTE_LDGSTS, route::ldgsts) && same(TMAP_ROUTE_PLAIN, route::plain));
static_assert(same(TMAP_POLICY_ENABLE - 1, route_policy::enable));
static_assert(same(TMAP_POLICY_DISABLE - 1, route_policy::disable) && same(TMAP_POLICY_FORCE - 1, route_policy::force));
static_assert(same(TMAP_REASON_BEST, route_reason::best));
static_assert(same(TMAP_REASON_DISABLED_BY_POLICY, route_reason::disabled_by_policy));
static_assert(same(TMAP_REASON_NOT_ALLOWED, route_reason::not_allowed));
static_assert(same(TMAP_REASON_MISALIGNED, route_reason::misaligned));
static_assert(same(TMAP_REASON_TOO_SMALL, route_reason::too_small));
static_assert(same(TMAP_REASON_EXTENT_TOO_LARGE, route_reason::extent_too_large));
static_assert(sizeof(ragged::tensor_status) == sizeof(std::uint32_t));

}  // namespace

void check_side(arguments& given, const tmap_tensor_batch* side, const support::argument& name) {
  given.structure(side, name);
  if (!given) return;
  given.enumerator(side->arrays_on_host, 1, name.member("arrays_on_host"));
  check_source(given, &side->tensors, name.member("tensors"));
}

tensor_batch side_of(const tmap_tensor_batch& side) {
  tensor_batch batch{.tensors = source_of(side.tensors),
                     .count = side.count,
                     .element_bytes = side.element_bytes,
                     .rank = side.rank,
                     .inner = {},
                     .side = side.arrays_on_host != 0 ? array_side::host : array_side::device};
  std::copy(std::begin(side.inner_dim), std::end(side.inner_dim), batch.inner.dim);
  std::copy(std::begin(side.inner_stride_bytes), std::end(side.inner_stride_bytes), batch.inner.stride_bytes);
  return batch;
}

dense_batch side_of(const tmap_dense_batch& side) {
  dense_batch dense{.address = side.address, .dim = {}, .stride_bytes = {}, .tensor_pitch_bytes = {}};
  std::copy(std::begin(side.dim), std::end(side.dim), dense.dim);
  std::copy(std::begin(side.stride_bytes), std::end(side.stride_bytes), dense.stride_bytes);
  dense.tensor_pitch_bytes = side.tensor_pitch_bytes;
  return dense;
}

ragged::packed_buffer side_of(const tmap_packed_buffer& side) {
  return {.memory = side.memory,
          .bytes = side.bytes,
          .alignment = side.alignment == 0 ? 1 : side.alignment,
          .begins = side.begins};
}

ragged::row_matrix side_of(const tmap_row_matrix& side) {
  return {side.address, side.rows, side.row_bytes, side.pitch_bytes};
}

void check_routes(arguments& given, std::uint32_t policy, std::uint32_t allowed, const route_names& names) {
  given.enumerator(policy, TMAP_POLICY_FORCE, names.policy);
  if ((allowed & ~all_routes.bits()) != 0) {
    given.refuse(names.allowed, "is {found:#x}; it must have no other bits than {allowed:#x}, all routes", allowed,
                 all_routes.bits());
  }
}

route_set routes_of(std::uint32_t allowed) {
  return allowed == 0 ? all_routes : route_set{allowed};
}

std::optional<route_policy> policy_of(std::uint32_t policy) {
  if (policy == TMAP_POLICY_DEFAULT) return std::nullopt;
  return static_cast<route_policy>(policy - 1);
}

void check_options(arguments& given, const tmap_ragged_options* options) {
  given.optional_structure(options, "options");
  if (given && options != nullptr)
    check_routes(given, options->policy, options->allowed, {"options.policy", "options.allowed"});
  check_check(given, options, "options.check");
}

ragged::run run_of(const tmap_ragged_options* options, const engine& where) {
  if (options == nullptr) return {where};
  return {.where = where,
          .statuses = reinterpret_cast<ragged::tensor_status*>(options->statuses),
          .header = reinterpret_cast<batch_header*>(options->header),
          .windows = {windows_of(*options), options->window_count},
          .check = check_of(*options),
          .choices = {.policy = policy_of(options->policy), .allowed = routes_of(options->allowed)}};
}

}  // namespace tmap::interop
