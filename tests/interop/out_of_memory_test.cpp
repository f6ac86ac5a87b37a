// SPDX-License-Identifier: Apache-2.0
// Tests every public call with each of its allocations failing in turn.
#include "interop/out_of_memory.hpp"

#include <tmap/encode.hpp>

#include <array>
#include <cstdio>
#include <map>
#include <set>

#include <unistd.h>

#include "support/failing_new.hpp"

namespace tmap::testing {

const needed_thing what_fails{&fail_allocation,
                              &allocations_made,
                              [](status code) { return code == status::out_of_memory; },
                              [] { return true; },
                              [] {
                                static const bool has_gpu = query_device_limits().has_value();
                                return has_gpu;
                              },
                              [](const std::function<bool()>& attempt) { return attempt(); }};

namespace {

std::vector<public_call> all_calls() {
  std::vector<public_call> all;
  for (const auto list : {&plain_calls, &ragged_calls, &service_calls_of_cpp, &peer_calls_of_cpp, &plain_calls_of_c,
                          &service_calls_of_c, &peer_calls_of_c}) {
    for (public_call& each : list()) all.push_back(std::move(each));
  }
  return all;
}

void check(const std::vector<public_call>& calls) {
  for (const public_call& each : calls) {
    SCOPED_TRACE(each.name);
    each.check();
  }
}

TEST(out_of_memory, plain_calls) {
  check(plain_calls());
}

TEST(out_of_memory, ragged_calls) {
  check(ragged_calls());
}

TEST(out_of_memory, service_calls) {
  check(service_calls_of_cpp());
}

TEST(out_of_memory, peer_calls) {
  check(peer_calls_of_cpp());
}

TEST(out_of_memory, plain_calls_of_c) {
  check(plain_calls_of_c());
}

TEST(out_of_memory, service_calls_of_c) {
  check(service_calls_of_c());
}

TEST(out_of_memory, peer_calls_of_c) {
  check(peer_calls_of_c());
}

/// Returns the symbols of this program, one line each, as `readelf` prints them.
std::vector<std::string> lines_of_symbols() {
  std::array<char, 4096> path{};
  EXPECT_GT(readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
  std::FILE* const pipe = popen(("readelf --syms --wide --demangle '" + std::string{path.data()} + "'").c_str(), "r");
  std::vector<std::string> lines;
  std::array<char, 8192> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) lines.emplace_back(line.data());
  EXPECT_EQ(pclose(pipe), 0);
  return lines;
}

/// Returns a public call with its arguments, or an empty text for any other symbol. The library
/// hides what is not public.
std::string signature_in(const std::string& line) {
  const bool is_visible = line.find(" FUNC    GLOBAL DEFAULT ") != std::string::npos;
  const std::size_t begin = line.find(" tmap");
  return is_visible && begin != std::string::npos ? line.substr(begin + 1) : std::string{};
}

/// Returns names without arguments and ABI tags, with the number of overloads of each.
std::map<std::string, int> exported_calls() {
  std::set<std::string> signatures;  // constructors and destructors appear twice
  for (const std::string& line : lines_of_symbols()) signatures.insert(signature_in(line));
  signatures.erase("");
  std::map<std::string, int> overloads;
  for (const std::string& each : signatures) ++overloads[each.substr(0, each.find_first_of("[(\n"))];
  return overloads;
}

TEST(out_of_memory, every_public_call_is_tested) {
  std::map<std::string, int> tested;
  for (const public_call& each : all_calls()) tested[each.name] += each.overloads;
  EXPECT_EQ(tested, exported_calls());
}

}  // namespace
}  // namespace tmap::testing
