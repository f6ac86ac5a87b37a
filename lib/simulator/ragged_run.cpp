// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_run.hpp"

namespace tmap::simulator {

result<route_options> routes_of(const ragged::options& with) {
  if (with.policy) return route_options{*with.policy, with.allowed};
  const auto policy = policy_from_environment();
  if (!policy) return failure{policy.error()};
  return route_options{*policy, with.allowed};
}

}  // namespace tmap::simulator
