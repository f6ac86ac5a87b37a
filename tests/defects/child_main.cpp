// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "defects/child_cases.hpp"

int main(int argc, char** argv) {
  const std::string prefix = tmap::testing::child_argument;
  const std::string argument = argc == 2 ? argv[1] : "";
  if (argument.compare(0, prefix.size(), prefix) == 0) {
    std::_Exit(tmap::testing::run_child_case(argument.substr(prefix.size())));
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
