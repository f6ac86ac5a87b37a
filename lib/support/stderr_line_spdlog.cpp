// SPDX-License-Identifier: Apache-2.0
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>

#include "lib/support/log.hpp"
#include "lib/support/stderr_line.hpp"

namespace tmap::support {
namespace {

spdlog::level::level_enum spdlog_level(log_level level) {
  switch (level) {
    case log_level::debug: return spdlog::level::debug;
    case log_level::info: return spdlog::level::info;
    case log_level::warning: return spdlog::level::warn;
    case log_level::error: return spdlog::level::err;
  }
  return spdlog::level::off;
}

/// A logger of our own, never registered, so that a program's own spdlog set-up stays its own. It
/// is never destroyed: threads may log while the process exits.
spdlog::logger& default_logger() {
  static spdlog::logger* logger = [] {
    auto made = std::make_unique<spdlog::logger>("tmap", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog_level(log_threshold(std::getenv("TMAP_LOG"))));
    return made.release();
  }();
  return *logger;
}

}  // namespace

void write_to_stderr(log_level level, const char* text) {
  default_logger().log(spdlog_level(level), text);
}

}  // namespace tmap::support
