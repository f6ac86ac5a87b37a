// SPDX-License-Identifier: Apache-2.0
// run_seed_test.cpp runs this program. It prints what the cases of this folder draw, and fails a
// test.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/pointer_case.hpp"
#include "gemm/row_case.hpp"
#include "gemm/weight_case.hpp"

namespace tmap::gemm::testing {
namespace {

std::size_t digest_of(const host_matrix& matrix) {
  const std::vector<unsigned char>& bytes = matrix.bytes();
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

template <class Case>
void tell(const char* name, const Case& of) {
  std::printf("drawn: %s %zx %zx\n", name, digest_of(of.a()), digest_of(of.b()));
}

TEST(seeded_cases, tell_what_they_draw) {
  for (const std::uint64_t number : {1, 2}) {
    row_settings rows;
    rows.sizes = {3, 5};
    rows.number = number;
    tell("rows", row_case(rows));
    weight_settings weights;
    weights.sizes = {3, 5};
    weights.number = number;
    tell("weights", weight_case(weights));
    pointer_settings pointers;
    pointers.sizes = {{3, 8, 8}};
    pointers.number = number;
    tell("pointers", products_of(pointers)[0]);
  }
}

TEST(seeded_cases, fail) {
  FAIL();
}

}  // namespace
}  // namespace tmap::gemm::testing
