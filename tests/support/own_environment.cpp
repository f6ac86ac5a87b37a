// SPDX-License-Identifier: Apache-2.0
// Part of every test program: tmap's settings in the environment are for other programs of whoever starts the tests,
// and would change what the tests see. A case that is about a setting sets it.
#include <cstdlib>

namespace tmap::testing {
namespace {

[[maybe_unused]] const bool has_own_environment = [] {
  for (const char* const setting : {"TMAP_LOG", "TMAP_POLICY"}) unsetenv(setting);
  return true;
}();

}  // namespace
}  // namespace tmap::testing
