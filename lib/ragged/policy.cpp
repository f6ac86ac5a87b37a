// SPDX-License-Identifier: Apache-2.0
#include <tmap/route.hpp>

#include <cstdlib>
#include <string_view>

#include "lib/support/arguments.hpp"

namespace tmap {

result<route_policy> policy_from_environment() {
  const char* const setting = std::getenv("TMAP_POLICY");
  const std::string_view word = setting == nullptr ? "enable" : setting;
  if (word == "enable") return route_policy::enable;
  if (word == "disable") return route_policy::disable;
  if (word == "force") return route_policy::force;
  return support::refused("TMAP_POLICY",
                          "is none of `enable`, `disable` and `force`; set this environment variable to one of them");
}

}  // namespace tmap
