// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/call.h>
#include <tmap/encode_batch.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/moe.hpp>
#include <tmap/ragged.hpp>

#include <cstdint>
#include <optional>

#include "lib/interop/call.hpp"

// Converts `tmap_call` to the library's runs.

namespace tmap::interop {

/// Names the members of `tmap_call` that a kind of call has a use for. All others must be 0.
struct uses {
  bool engine{};
  bool workspace{true};
  bool statuses{true};
  bool windows{true};
  bool routes{};
  bool maps{};
  bool product{};
};

void check_call(arguments& all, const tmap_call& call, const uses& used);
template <class Run>
Run run_of(const tmap_call& call);

/// Describes how a call of this kind runs; null stands for zeros (inputs.hpp).
template <class Run, uses Used>
struct call_input {
  void check(arguments& all) const {
    all.optional_structure(given, "call");
    if (all && given != nullptr) check_call(all, *given, Used);
  }
  Run value() const {
    constexpr tmap_call zeros{};
    return run_of<Run>(given == nullptr ? zeros : *given);
  }

  const tmap_call* given;
};

using encode_call = call_input<encode_run, uses{.maps = true}>;
/// The statuses of a service are those of the batch that it lends.
using service_call = call_input<encode_run, uses{.statuses = false, .maps = true}>;
using ragged_call = call_input<ragged::run, uses{.engine = true, .routes = true}>;
/// Rows by index.
using index_call = call_input<ragged::run, uses{.engine = true, .workspace = false, .windows = false, .routes = true}>;
/// Rows without gaps.
using padding_call =
    call_input<ragged::run, uses{.engine = true, .workspace = false, .statuses = false, .windows = false}>;
using gemm_call = call_input<gemm::run, uses{.windows = false, .product = true}>;
using moe_route_call = call_input<moe::run, uses{.windows = false}>;
using moe_layer_call = call_input<moe::run, uses{.windows = false}>;
using moe_combine_call = call_input<moe::run, uses{.workspace = false, .windows = false}>;

/// Check and convert `TMAP_POLICY_*` and sets of routes. Zeros stand for the defaults.
void check_routes(arguments& all, std::uint32_t policy, std::uint32_t allowed, const support::argument& policy_name,
                  const support::argument& allowed_name);
std::optional<route_policy> policy_of(std::uint32_t policy);
route_set routes_of(std::uint32_t allowed);

}  // namespace tmap::interop
