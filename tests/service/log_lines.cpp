// SPDX-License-Identifier: Apache-2.0
#include "service/log_lines.hpp"

namespace tmap::testing {

log_lines::log_lines() {
  set_log_callback(
      [](log_level level, const char* text, void* user) {
        static_cast<log_lines*>(user)->lines_.push_back({level, text});
      },
      this);
}

log_lines::~log_lines() {
  set_log_callback(nullptr, nullptr);
}

std::uint64_t log_lines::count(log_level level) const {
  std::uint64_t found = 0;
  for (const line& each : lines_) found += each.level == level ? 1 : 0;
  return found;
}

bool log_lines::has(log_level level, const std::string& part) const {
  for (const line& each : lines_) {
    if (each.level == level && each.text.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace tmap::testing
