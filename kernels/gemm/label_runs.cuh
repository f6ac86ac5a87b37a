// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/map_patch.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"

namespace tmap::kernels {

struct label_runs_request {
  row_offsets labels;
  std::uint64_t rows;
  std::uint32_t groups;
  label_run* runs;  ///< one for each group
  fault_sink faults;
};

/// Finds the rows of each label. Rows whose label is neither a group nor -1 are reported.
cudaError_t launch_label_runs(const label_runs_request& request, std::uint32_t multiprocessors, cudaStream_t stream);

}  // namespace tmap::kernels
