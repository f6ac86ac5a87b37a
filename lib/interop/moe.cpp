// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/moe.h>
#include <tmap/moe.hpp>

#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"
#include "lib/interop/inputs.hpp"

using namespace tmap::interop;
namespace moe = tmap::moe;

uint64_t tmap_moe_most_rows(uint64_t tokens, uint32_t experts, uint32_t k, uint32_t alignment) {
  return alignment == 0 ? 0 : moe::most_rows(tokens, experts, k, alignment);
}

tmap_status tmap_moe_workspace_bytes(const tmap_route_problem* problem, uint64_t* bytes) {
  return ask(__func__, output{"bytes", bytes}, moe::workspace_bytes, input{"problem", problem});
}

tmap_status tmap_moe_route(const tmap_route_problem* problem, const tmap_route_results* results,
                           const tmap_call* call) {
  return run(__func__, moe::route, input{"problem", problem}, optional_input{"results", results}, moe_route_call{call});
}

tmap_status tmap_moe_combine(const tmap_combine_problem* problem, const tmap_call* call) {
  return run(__func__, moe::combine, input{"problem", problem}, moe_combine_call{call});
}
