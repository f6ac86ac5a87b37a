// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/moe.h>
#include <tmap/moe.hpp>
#include <tmap/moe_layer.hpp>

#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"
#include "lib/interop/inputs.hpp"

using namespace tmap::interop;
namespace moe = tmap::moe;

namespace {

tmap::result<std::uint64_t> routed_bytes(const moe::route_problem& problem) {
  return moe::workspace_bytes(problem);
}
tmap::result<std::uint64_t> layer_bytes(const moe::layer_problem& problem) {
  return moe::workspace_bytes(problem);
}

}  // namespace

uint64_t tmap_moe_most_rows(uint64_t tokens, uint32_t experts, uint32_t k, uint32_t alignment) {
  return alignment == 0 ? 0 : moe::most_rows(tokens, experts, k, alignment);
}

tmap_status tmap_moe_workspace_bytes(const tmap_route_problem* problem, uint64_t* bytes) {
  return ask(__func__, output{"bytes", bytes}, routed_bytes, input{"problem", problem});
}

tmap_status tmap_moe_route(const tmap_route_problem* problem, const tmap_route_results* results,
                           const tmap_call* call) {
  return run(__func__, moe::route, input{"problem", problem}, optional_input{"results", results}, moe_route_call{call});
}

tmap_status tmap_moe_combine(const tmap_combine_problem* problem, const tmap_call* call) {
  return run(__func__, moe::combine, input{"problem", problem}, moe_combine_call{call});
}

tmap_status tmap_moe_layer_workspace_bytes(const tmap_layer_problem* problem, uint64_t* bytes) {
  return ask(__func__, output{"bytes", bytes}, layer_bytes, input{"problem", problem});
}

tmap_status tmap_moe_layer(const tmap_layer_problem* problem, const tmap_layer_results* results,
                           const tmap_call* call) {
  return run(__func__, moe::layer, input{"problem", problem}, optional_input{"results", results}, moe_layer_call{call});
}

tmap_status tmap_moe_combine_backward(const tmap_combine_gradients* problem, const tmap_call* call) {
  return run(__func__, moe::combine_backward, input{"problem", problem}, moe_combine_call{call});
}
