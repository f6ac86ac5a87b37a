// SPDX-License-Identifier: Apache-2.0
#include <tmap/route.hpp>

#include <cstdlib>
#include <string_view>

namespace tmap {

result<route_policy> policy_from_environment() {
  const char* const setting = std::getenv("TMAP_POLICY");
  const std::string_view word = setting == nullptr ? "enable" : setting;
  if (word == "enable") return route_policy::enable;
  if (word == "disable") return route_policy::disable;
  if (word == "force") return route_policy::force;
  error e{status::invalid_argument};
  e.argument = "the environment variable TMAP_POLICY (enable, disable or force)";
  return failure(e);
}

}  // namespace tmap
