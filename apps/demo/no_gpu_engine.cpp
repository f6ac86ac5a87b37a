// SPDX-License-Identifier: Apache-2.0
#include "apps/demo/engine.hpp"

namespace tmap::demo {

tool::outcome<engine_run> run_on_gpu(const demo_batch&) {
  return tool::refuse("this build has no kernels");
}

}  // namespace tmap::demo
