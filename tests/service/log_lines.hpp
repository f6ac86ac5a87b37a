// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/log.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace tmap::testing {

/// Collects the log while it exists.
class log_lines {
 public:
  log_lines();
  ~log_lines();
  std::uint64_t count(log_level level) const;
  bool has(log_level level, const std::string& part) const;
  void clear() { lines_.clear(); }

 private:
  struct line {
    log_level level;
    std::string text;
  };
  std::vector<line> lines_;
};

}  // namespace tmap::testing
