// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

// Random numbers that differ in every run of a test program. TMAP_TEST_SEED repeats the run that
// printed its seed.

namespace tmap::testing {

/// Returns the decimal number if it is all of `text`.
inline std::optional<std::uint32_t> seed_of(std::string_view text) {
  std::uint32_t seed{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return seed;
}

/// Returns the seed of the process; nothing if TMAP_TEST_SEED is no seed, and then no test runs.
inline std::optional<std::uint32_t> run_seed() {
  static const std::optional<std::uint32_t> seed = [] {
    const char* const told = std::getenv("TMAP_TEST_SEED");
    return told == nullptr ? std::optional<std::uint32_t>{std::random_device{}()} : seed_of(told);
  }();
  return seed;
}

/// Returns different numbers for each `number`, independently of other draws: a test draws the same
/// alone as among others.
inline std::mt19937_64 run_random(std::uint64_t number) {
  std::seed_seq words{run_seed().value(), static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)};
  return std::mt19937_64(words);
}

/// Prints the seed before the first test, because a test may crash, and again after the last one if
/// any failed.
class seed_teller : public ::testing::Environment {
 public:
  void SetUp() override {
    if (!run_seed().has_value()) refuse();
    ::testing::Test::RecordProperty("TMAP_TEST_SEED", std::to_string(*run_seed()));
    tell();
  }
  void TearDown() override {
    if (::testing::UnitTest::GetInstance()->Failed()) tell();
  }

 private:
  /// Exits instead of failing, because GoogleTest would then report all tests as skipped.
  [[noreturn]] static void refuse() {
    std::fprintf(stderr, "TMAP_TEST_SEED is no decimal number of 32 bits: \"%s\"\n", std::getenv("TMAP_TEST_SEED"));
    std::exit(EXIT_FAILURE);
  }
  static void tell() {
    std::printf("TMAP_TEST_SEED=%u\n", *run_seed());
    std::fflush(stdout);
  }
};

inline ::testing::Environment* const the_seed_teller = ::testing::AddGlobalTestEnvironment(new seed_teller);

}  // namespace tmap::testing
