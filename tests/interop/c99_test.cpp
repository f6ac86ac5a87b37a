// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

/// Returns 0, or the line of c99_program.c that failed.
extern "C" int c99_program(void);

TEST(c99, a_program_in_c_finds_what_the_header_says) {
  EXPECT_EQ(c99_program(), 0);
}
