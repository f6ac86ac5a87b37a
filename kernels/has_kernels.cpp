// SPDX-License-Identifier: Apache-2.0
#include "kernels/has_kernels.hpp"

namespace tmap::kernels {

bool has_kernels() {
  return true;
}

}  // namespace tmap::kernels
