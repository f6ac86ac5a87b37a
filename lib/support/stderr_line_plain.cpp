// SPDX-License-Identifier: Apache-2.0
// Takes the place of stderr_line_spdlog.cpp where spdlog is not installed.
#include <cstdio>
#include <cstdlib>

#include "lib/support/log.hpp"
#include "lib/support/stderr_line.hpp"

namespace tmap::support {

void write_to_stderr(log_level level, const char* text) {
  static constexpr const char* names[] = {"debug", "info", "warning", "error"};
  static const log_level threshold = log_threshold(std::getenv("TMAP_LOG"));
  if (level < threshold || level > log_level::error) return;
  std::fprintf(stderr, "[tmap] [%s] %s\n", names[static_cast<std::uint32_t>(level)], text);
}

}  // namespace tmap::support
