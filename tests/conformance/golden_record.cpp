// SPDX-License-Identifier: Apache-2.0
#include "conformance/golden_record.hpp"

#include "conformance/contents.hpp"
#include "support/spec_text.hpp"

#include <fstream>
#include <iomanip>

namespace tmap::conformance {

std::uint64_t digest_of_cases(cuda::std::span<const tile_case> cases) {
  std::vector<std::uint64_t> numbers{cases.size()};
  const auto add = [&](auto number) { numbers.push_back(static_cast<std::uint64_t>(number)); };
  for (const tile_case& tile : cases) {
    testing::for_each_number(tile.spec, add);
    for (const std::int32_t coordinate : tile.coordinates) add(coordinate);
    add(tile.kind);
    add(tile.operation);
    add(tile.shared_offset);
  }
  return digest(0, reinterpret_cast<const std::byte*>(numbers.data()), numbers.size() * sizeof numbers[0]);
}

golden_record read_record(const std::string& path) {
  golden_record record;
  std::ifstream file{path};
  for (std::string line; file.peek() == '#' && std::getline(file, line);) record.origin += line + '\n';
  file >> std::hex >> record.cases_digest;
  for (std::uint32_t value = 0; file >> value;) record.digests.push_back(value);
  return record;
}

bool write_record(const std::string& path, const golden_record& record) {
  std::ofstream file{path};
  file << record.origin << std::hex << record.cases_digest << '\n' << std::setfill('0');
  for (std::size_t i = 0; i < record.digests.size(); ++i) {
    file << std::setw(8) << record.digests[i] << (i % 12 == 11 ? '\n' : ' ');
  }
  file << '\n';
  return file.good();
}

std::map<std::string, std::uint64_t> count_features(cuda::std::span<const tile_case> cases) {
  std::map<std::string, std::uint64_t> counts;
  for (const tile_case& tile : cases) {
    for (const std::string& feature : features_of(tile)) ++counts[feature];
  }
  return counts;
}

bool write_fidelity_counts(const std::string& path, const std::map<std::string, std::uint64_t>& counts) {
  std::ofstream file{path};
  file << "// SPDX-License-Identifier: Apache-2.0\n"
          "// Written by tests/conformance on a GPU (TMAP_RECORD_DIR), where every case agreed. Do not edit.\n";
  for (const auto& [feature, cases] : counts) file << "TMAP_FEATURE(\"" << feature << "\", " << cases << ")\n";
  return file.good();
}

std::string record_path() {
  return TMAP_TEST_DATA "/../golden/tile_digests.txt";
}

}  // namespace tmap::conformance
