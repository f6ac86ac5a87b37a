// SPDX-License-Identifier: Apache-2.0
#include "conformance/tile_contract.hpp"

#include "conformance/case_source.hpp"
#include "conformance/golden_record.hpp"

#include <cstring>
#include <sstream>

namespace tmap::conformance {
namespace {

constexpr int most_messages = 5;

std::string first_difference(const char* where, cuda::std::span<const std::byte> expected,
                             cuda::std::span<const std::byte> found) {
  if (std::memcmp(expected.data(), found.data(), expected.size()) == 0) return {};
  std::size_t first = 0;
  std::size_t count = 0;
  for (std::size_t i = expected.size(); i-- > 0;) {
    if (expected[i] != found[i]) first = i, ++count;
  }
  std::ostringstream text;
  text << count << " bytes of " << where << " differ, the first at " << first << ": expected "
       << static_cast<int>(expected[first]) << ", found " << static_cast<int>(found[first]) << "; ";
  return text.str();
}

}  // namespace

std::string difference(const outcome& expected, const outcome& found) {
  std::ostringstream text;
  if (!found.finished) text << to_string(found.finished.error()) << "; ";
  if (expected.barrier_bytes != found.barrier_bytes) {
    text << "the barrier received " << found.barrier_bytes << " bytes instead of " << expected.barrier_bytes << "; ";
  }
  text << first_difference("shared memory", expected.shared, found.shared)
       << first_difference("the arena", expected.arena, found.arena);
  return text.str();
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(tile_contract);

TEST_P(tile_contract, leaves_the_bytes_a_gpu_left) {
  const auto cases = all_cases();
  const golden_record record = read_record(record_path());
  ASSERT_EQ(record.digests.size(), cases.size()) << "the golden record is missing or of other cases: " << record_path();
  ASSERT_EQ(record.cases_digest, digest_of_cases(cases)) << "the golden record is of other cases";
  std::size_t compared = 0;
  int wrong = 0;
  engine().run(cases, [&](std::size_t i, const outcome& left) {
    ++compared;
    const bool agrees = left.finished && short_digest(digest(left)) == record.digests[i];
    if (!agrees && ++wrong <= most_messages) {
      ADD_FAILURE() << "case " << i << (left.finished ? " left other bytes: " : " failed: ") << to_text(cases[i])
                    << (left.finished ? "" : to_string(left.finished.error()));
    }
  });
  EXPECT_EQ(compared, cases.size());
  EXPECT_EQ(wrong, 0) << "of " << cases.size() << " cases";
}

}  // namespace tmap::conformance
