// SPDX-License-Identifier: Apache-2.0
#include "lib/support/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>

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

spdlog::level::level_enum spdlog_level(log_level level) {
  switch (level) {
    case log_level::debug: return spdlog::level::debug;
    case log_level::info: return spdlog::level::info;
    case log_level::warning: return spdlog::level::warn;
    case log_level::error: return spdlog::level::err;
  }
  return spdlog::level::off;
}

/// Our own logger. It is never registered, so that a program's spdlog set-up is not affected, and
/// never destroyed, because threads may log while the process exits.
spdlog::logger& default_logger() {
  static spdlog::logger* logger = [] {
    auto made = std::make_unique<spdlog::logger>("tmap", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog_level(support::log_threshold(std::getenv("TMAP_LOG"))));
    return made.release();
  }();
  return *logger;
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
      default_logger().log(spdlog_level(level), text);
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
