// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/engine.hpp"

namespace tmap::tool {

outcome<engine> choose_engine(engine_request request) {
  if (request == engine_request::simulator) return engine{"simulator", "", "as asked", pad_on_host};
  const auto gpu = usable_gpu();
  if (gpu) return engine{"gpu", *gpu, request == engine_request::gpu ? "as asked" : "found", pad_on_gpu};
  if (request == engine_request::gpu) return refuse("no usable GPU: {}", gpu.error());
  return engine{"simulator", "", fmt::format("no usable GPU: {}", gpu.error()), pad_on_host};
}

}  // namespace tmap::tool
