// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/tile_case.hpp"

#include <cuda/std/span>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

// Stores a digest of the GPU's result for each case of `all_cases` in a text file. Lines that begin
// with '#' name the GPU, the driver and the day. The first other line is a digest of the cases
// themselves, so that a record never applies to other cases.

namespace tmap::conformance {

struct golden_record {
  std::string origin;  ///< holds the comment lines
  std::uint64_t cases_digest{};
  std::vector<std::uint32_t> digests;  ///< one for each case
};

std::uint64_t digest_of_cases(cuda::std::span<const tile_case> cases);

/// Returns the low half of an outcome's digest, which is what the file stores.
constexpr std::uint32_t short_digest(std::uint64_t digest) {
  return static_cast<std::uint32_t>(digest);
}

/// Returns empty digests if there is no such file.
golden_record read_record(const std::string& path);
bool write_record(const std::string& path, const golden_record& record);

/// Counts the cases that exercise each feature.
std::map<std::string, std::uint64_t> count_features(cuda::std::span<const tile_case> cases);

/// Writes the table that lib/simulator/fidelity.cpp includes.
bool write_fidelity_counts(const std::string& path, const std::map<std::string, std::uint64_t>& counts);

/// Returns the path of tests/golden/tile_digests.txt.
std::string record_path();

}  // namespace tmap::conformance
