// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tmap::testing {

/// Three comment lines that say which GPU, driver and day a record comes from.
std::string gpu_origin();

}  // namespace tmap::testing
