// SPDX-License-Identifier: Apache-2.0
#include "lib/moe/device.hpp"

#include "lib/driver/map_driver.hpp"
#include "lib/encode/device.hpp"

namespace tmap::moe {

result<void> require_gpu() {
  if (const result<void> has_kernels = require_kernels(); !has_kernels) return has_kernels;
  const result<device_limits> limits = driver::process_driver().query_limits();
  if (!limits) return failure(limits.error());
  return driver::require_copy_engine(*limits);
}

}  // namespace tmap::moe
