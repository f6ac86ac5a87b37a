// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/ragged.h>
#include <tmap/ragged.hpp>
#include <tmap/tensor_batch.hpp>

#include "lib/interop/call.hpp"

// C's structs of c/ragged.h and the library's. `check_side` comes before `side_of`.

namespace tmap::interop {

void check_side(arguments& given, const tmap_tensor_batch* side, const support::argument& name);

/// Structs without enums.
template <class Struct>
void check_side(arguments& given, const Struct* side, const support::argument& name) {
  given.structure(side, name);
}

tensor_batch side_of(const tmap_tensor_batch& side);
dense_batch side_of(const tmap_dense_batch& side);
ragged::packed_buffer side_of(const tmap_packed_buffer& side);
ragged::row_matrix side_of(const tmap_row_matrix& side);

void check_options(arguments& given, const tmap_ragged_options* options);
/// Of checked options; null: without any.
ragged::run run_of(const tmap_ragged_options* options, const engine& where);

/// `TMAP_POLICY_*` and sets of routes, of the caller's or by default.
struct route_names {
  const support::argument& policy;
  const support::argument& allowed;
};
void check_routes(arguments& given, std::uint32_t policy, std::uint32_t allowed, const route_names& names);
route_set routes_of(std::uint32_t allowed);
std::optional<route_policy> policy_of(std::uint32_t policy);

}  // namespace tmap::interop
