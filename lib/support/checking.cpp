// SPDX-License-Identifier: Apache-2.0
#include "lib/support/checking.hpp"

#include <tmap/faults.hpp>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace tmap {

namespace support {

result<fault_check> check_setting(const char* word) {
  const std::string_view setting = word == nullptr ? "off" : word;
  if (setting == "off") return fault_check::off;
  if (setting == "sync") return fault_check::sync;
  return refused("TMAP_CHECK", "is neither `off` nor `sync`; set this environment variable to one of them");
}

void check_fault_check(arguments& given, fault_check asked, const argument& name) {
  given.enumerator(asked, fault_check::sync, name);
  if (asked == fault_check::environment) given.add(check_from_environment());
}

bool is_checked(fault_check asked) {
  if (asked == fault_check::environment) asked = check_from_environment().value_or(fault_check::off);
  return asked == fault_check::sync;
}

std::uint64_t next_call_number() {
  static std::atomic<std::uint64_t> calls{0};
  return calls.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace support

result<fault_check> check_from_environment() {
  static const result<fault_check> setting = support::check_setting(std::getenv("TMAP_CHECK"));
  return setting;
}

}  // namespace tmap
