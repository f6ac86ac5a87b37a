// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes what calls of the library have in common: an output, offsets and the call's own struct.

#include <tmap/c/batch.h>

#include "lib/torch/tensor_view.hpp"

#include <span>

namespace tmap::pytorch {

/// Makes a tensor on the device of another. Nobody has written its memory.
Tensor new_tensor(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::int32_t type,
                  const tensor_view& like);

/// True for int32 or int64 in one dim.
bool are_offsets(const tensor_view& offsets);
/// Offsets in the format `TMAP_OFFSETS_ENDS` or `TMAP_OFFSETS_PREFIX`, without gaps.
tmap_row_offsets describe_offsets(const tensor_view& offsets, std::uint32_t format);

/// Returns a call on the current stream of the tensor's device, or on the host for one of the CPU.
tmap_call call_for(const tensor_view& of);

}  // namespace tmap::pytorch
