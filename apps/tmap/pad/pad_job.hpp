// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/engine.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace tmap::tool {

/// What one run of `tmap pad` was asked to do.
struct pad_request {
  std::vector<std::string> inputs;
  std::filesystem::path out;
  plan_options plan;
  engine_request engine{};
  bool keep_going{};
  bool quiet{};
};

/// Runs the job: results to `request.out`, a summary to standard output, a sentence for each
/// failure to standard error. Answers with the exit code: 0, or 1 when anything failed.
int run_pad(const pad_request& request);

}  // namespace tmap::tool
