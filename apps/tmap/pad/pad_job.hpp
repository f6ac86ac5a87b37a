// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/engine.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace tmap::tool {

/// One run of `tmap pad`, as the command line asks for it.
struct pad_request {
  std::vector<std::string> inputs;
  std::filesystem::path out;
  plan_options plan;
  engine_request engine{};
  bool keep_going{};
  bool quiet{};
};

/// Runs the job: results to `request.out`, a summary to standard output, a sentence for each
/// failure to standard error. Returns the exit code: 0, or 1 when anything failed.
int run_pad(const pad_request& request);

}  // namespace tmap::tool
