// SPDX-License-Identifier: Apache-2.0
#include "lib/support/log.hpp"

#include <mutex>
#include <string_view>

#include "lib/support/stderr_line.hpp"

namespace tmap {
namespace {

constexpr log_level silence{4};

struct destination {
  std::mutex mutex;
  log_callback callback{};
  void* user{};
};

destination& current_destination() {
  static destination place;
  return place;
}

}  // namespace

namespace support {

log_level log_threshold(const char* setting) {
  const std::string_view word = setting == nullptr ? "warning" : setting;
  if (word == "debug") return log_level::debug;
  if (word == "info") return log_level::info;
  if (word == "error") return log_level::error;
  if (word == "off") return silence;
  return log_level::warning;
}

void log(log_level level, const char* text) noexcept {
  if (*text == '\0') return;  // there was no memory for its text
  try {
    destination& place = current_destination();
    const std::lock_guard lock{place.mutex};
    if (place.callback != nullptr) {
      place.callback(level, text, place.user);
    } else {
      write_to_stderr(level, text);
    }
  } catch (...) {
    // A lost log line must not end the caller's process.
  }
}

}  // namespace support

void set_log_callback(log_callback callback, void* user) {
  destination& place = current_destination();
  const std::lock_guard lock{place.mutex};
  place.callback = callback;
  place.user = user;
}

}  // namespace tmap
