// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_patch.hpp>

#include <variant>

namespace tmap {

/// The description of the tensors of a batch: any of the patch sources of map_patch.hpp.
using tensor_source = std::variant<patch_array, patch_columns, compact_columns, ragged_rows>;

}  // namespace tmap
