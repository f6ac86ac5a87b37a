// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/reduction.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include <cuda/std/span>

#include <cstdint>

// The copy engine refuses an illegal instruction first, then a misaligned address
// (docs/measurements/copy_engine_semantics.md, section 4). Missing memory shows during the copy.

namespace tmap::simulator {

/// One copy as the instruction states it. `operation` is null for plain loads and stores.
struct copy_request {
  const tensor_map& map;
  cuda::std::span<const std::int32_t> coordinates;
  std::uint64_t tile_size;
  std::uint32_t shared_address;
  bool is_store;
  const reduction* operation;
};

/// Returns the spec that the engine would work with, or the first error that it would raise.
[[nodiscard]] result<tensor_spec> accept(const copy_request& request);

}  // namespace tmap::simulator
