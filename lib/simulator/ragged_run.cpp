// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_run.hpp"

namespace tmap::simulator {

result<route_options> routes_of(const ragged::choices& made) {
  if (made.policy) return route_options{*made.policy, made.allowed};
  const auto policy = policy_from_environment();
  if (!policy) return failure{policy.error()};
  return route_options{*policy, made.allowed};
}

}  // namespace tmap::simulator
