// SPDX-License-Identifier: Apache-2.0
// Part of every test program. tmap's settings in the environment are for other programs, and would
// change what the tests see. A case that is about a setting sets it; a child of such a case finds
// its TMAP_CHECK in TMAP_TEST_CHECK.
#include <cstdlib>
#include <initializer_list>

namespace tmap::testing {
namespace {

[[maybe_unused]] const bool has_own_environment = [] {
  for (const char* const setting : {"TMAP_CHECK", "TMAP_LOG", "TMAP_POLICY"}) unsetenv(setting);
  if (const char* const check = std::getenv("TMAP_TEST_CHECK")) setenv("TMAP_CHECK", check, 1);
  return true;
}();

}  // namespace
}  // namespace tmap::testing
