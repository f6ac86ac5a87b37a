// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>

#include "apps/drawing/figure.hpp"

namespace tmap::drawing {

/// Draws how common reads of a tile spread over the banks of shared memory, with the swizzle of
/// `spec` and without one. `spec` breaks no rule of compute capability 9.0.
panel draw_bank_reads(const tensor_spec& spec);

}  // namespace tmap::drawing
