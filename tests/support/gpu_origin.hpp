// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tmap::testing {

/// Returns three comment lines that name the GPU, the driver and the day of a record.
std::string gpu_origin();

}  // namespace tmap::testing
