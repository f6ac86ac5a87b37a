// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/peer_memory.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap {

/// Returns the spec of the tensors that lie at the same place in the windows of all ranks and have
/// the same shape, as one tensor. It has one dim more than `local`, the last, whose coordinate is
/// the rank: one map then serves all ranks. `local` describes the tensor in this rank's window. Its
/// box takes one rank. Windows must lie at equal distances, in the order of ranks, as those of NCCL
/// do. Otherwise, or if shapes differ, encode a map for each owner (`encode_choices::owners`).
/// @fails `invalid_argument`. Other rules of maps are those of `validate`.
[[nodiscard]] TMAP_API result<tensor_spec> all_ranks_spec(const tensor_spec& local, const peer_memory& window);

}  // namespace tmap
