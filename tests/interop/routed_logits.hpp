// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/moe.h>

#include "interop/sized.hpp"
#include "interop/unread.hpp"

namespace tmap::testing {

/// Returns a legal route in C, each member different.
inline tmap_route_problem c_logits() {
  tmap_route_problem made = sized<tmap_route_problem>();
  made.experts = 64;
  made.tokens = 1000;
  made.k = 4;
  made.alignment = 16;
  made.rows = 512;
  made.choices.type = TMAP_FLOAT_BF16;
  made.choices.values = {0x10000, 128};
  made.choices.scoring = TMAP_SCORING_SIGMOID;
  made.choices.scale = 2.5f;
  made.choices.bias = unread<float>(0x20000);
  made.choices.groups = {8, 4, TMAP_GROUP_SCORE_SUM_OF_TWO_LARGEST, 0};
  made.choices.renormalise = 1;
  return made;
}

}  // namespace tmap::testing
