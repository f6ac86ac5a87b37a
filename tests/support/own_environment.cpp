// SPDX-License-Identifier: Apache-2.0
// Part of every test program. Removes tmap's settings from the environment, because they would
// change the tests. A test of a setting sets it itself. Its child process finds its TMAP_CHECK in
// TMAP_TEST_CHECK.
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
