// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_source.hpp"
#include "conformance/golden_record.hpp"
#include "conformance/tile_contract.hpp"
#include "support/gpu_origin.hpp"

#include <cstdlib>
#include <iostream>
#include <vector>

namespace tmap::conformance {

INSTANTIATE_TEST_SUITE_P(gpu, tile_contract, ::testing::Values(&make_gpu_engine));

namespace {

constexpr std::size_t stretch = 512;
constexpr int most_messages = 5;
constexpr const char* heading =
    "# Holds a digest of the copy engine's results for each case of tests/conformance, in order.\n";

/// Keeps an outcome's bytes after the engine's call.
struct kept_outcome {
  explicit kept_outcome(const outcome& left)
      : arena{left.arena.begin(), left.arena.end()}, shared{left.shared.begin(), left.shared.end()} {
    whole = {.finished = left.finished, .barrier_bytes = left.barrier_bytes, .arena = arena, .shared = shared};
  }

  std::vector<std::byte> arena;
  std::vector<std::byte> shared;
  outcome whole;
};

/// Runs every case on both engines and reports differences. Returns the digests of the GPU's
/// results.
std::vector<std::uint32_t> compare_engines(cuda::std::span<const tile_case> cases) {
  const auto gpu = make_gpu_engine();
  const auto model = make_simulator_engine();
  std::vector<std::uint32_t> digests;
  int wrong = 0;
  for (std::size_t first = 0; first < cases.size(); first += stretch) {
    const auto part = cases.subspan(first, std::min(stretch, cases.size() - first));
    std::vector<std::unique_ptr<kept_outcome>> expected;
    model->run(part,
               [&](std::size_t, const outcome& left) { expected.push_back(std::make_unique<kept_outcome>(left)); });
    gpu->run(part, [&](std::size_t i, const outcome& left) {
      digests.push_back(short_digest(digest(left)));
      const std::string differs = difference(expected[i]->whole, left);
      if (!differs.empty() && ++wrong <= most_messages) {
        ADD_FAILURE() << "case " << first + i << ": " << differs << to_text(part[i]);
      }
    });
  }
  EXPECT_EQ(wrong, 0) << "of " << cases.size() << " cases";
  return digests;
}

/// Writes the golden record and the fidelity counts from the GPU's results if TMAP_RECORD_DIR is
/// set.
void record(cuda::std::span<const tile_case> cases, std::vector<std::uint32_t> digests) {
  const char* folder = std::getenv("TMAP_RECORD_DIR");
  if (folder == nullptr || ::testing::Test::HasFailure()) return;
  const golden_record record{heading + testing::gpu_origin(), digest_of_cases(cases), std::move(digests)};
  EXPECT_TRUE(write_record(std::string{folder} + "/tile_digests.txt", record));
  EXPECT_TRUE(write_fidelity_counts(std::string{folder} + "/fidelity_counts.inc", count_features(cases)));
}

TEST(gpu, agrees_with_the_simulator_in_every_byte) {
  if (const std::string why = make_gpu_engine()->unavailable(); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  const auto cases = all_cases();
  record(cases, compare_engines(cases));
  for (const auto& [feature, count] : count_features(cases)) std::cout << count << " tiles: " << feature << '\n';
  std::cout << cases.size() << " tiles in all\n";
}

}  // namespace
}  // namespace tmap::conformance
