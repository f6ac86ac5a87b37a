// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/engine.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace tmap::tool {

/// One batch that was copied, checked and written.
struct finished_batch {
  batch_plan plan;
  std::string file;
  copy_times times;
  double check_seconds{};

  /// Returns the billions of bytes that the copy reads and writes in one second.
  double gigabytes_per_second() const;
  /// Returns the part that comes from tensors; of a batch without bytes, 0.
  double fill() const {
    return static_cast<double>(plan.valid_bytes) / static_cast<double>(std::max<std::uint64_t>(plan.dense_bytes, 1));
  }
};

/// All of one run that stands in the report.
struct run_record {
  engine chosen;
  std::vector<tensor> tensors;
  std::vector<finished_batch> batches;
  std::vector<std::string> failures;
  std::string contact_sheet;  ///< its file, or empty
  double read_seconds{};
};

/// Returns the report as JSON text.
std::string report_json(const run_record& record);

}  // namespace tmap::tool
