// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/reduction.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include <cuda/std/span>

#include <cstddef>
#include <cstdint>

namespace tmap::simulator {

/// A piece of simulated global memory: `data` stands at device address `base`.
struct memory_window {
  std::uint64_t base{};
  cuda::std::span<std::byte> data;
};

using tmap::reduction;

/// The copy engine on the CPU, for tiled maps. It reads the 128 bytes of a map as the hardware does
/// and moves a tile between the given windows of memory and a buffer that stands for shared memory,
/// at shared address `shared_address` (a multiple of 128, on which the swizzle pattern depends; 0
/// is right for an aligned tile).
///
/// What would kill a CUDA context comes back as an error with the rule it breaks:
/// `illegal_instruction`, `misaligned_address`, `illegal_memory_access` (a byte outside every
/// window: `found` is its address). A tile shorter than `tile_footprint_bytes` is an
/// `invalid_argument`. What the model does is measured: docs/measurements/copy_engine_semantics.md.
/// A 32-byte interleave with another swizzle (T25) is not: `unsupported`. Owns nothing; the windows
/// must outlive it. Thread-safe as far as the windows' bytes are: two stores to the same bytes
/// race, as they do on the GPU.
class copy_engine {
 public:
  TMAP_API explicit copy_engine(cuda::std::span<const memory_window> windows) : windows_{windows} {}

  /// Fills `tile` (`tile_bytes` of it, spread over `tile_footprint_bytes`); answers with the bytes
  /// the barrier receives. A failing load may have filled some of it.
  [[nodiscard]] TMAP_API result<std::uint64_t> load(const tensor_map& map,
                                                    cuda::std::span<const std::int32_t> coordinates,
                                                    cuda::std::span<std::byte> tile,
                                                    std::uint32_t shared_address = 0) const;

  /// Writes the part of `tile` that lies inside the tensor; along dimension 0 it goes on to the
  /// next multiple of 16 bytes, as the hardware does. A failing store may have written some bytes.
  [[nodiscard]] TMAP_API result<void> store(const tensor_map& map, cuda::std::span<const std::int32_t> coordinates,
                                            cuda::std::span<const std::byte> tile,
                                            std::uint32_t shared_address = 0) const;

  /// Combines the part of `tile` that lies inside the tensor with memory. Fails with U06 for a type
  /// without the operation.
  [[nodiscard]] TMAP_API result<void> reduce(reduction operation, const tensor_map& map,
                                             cuda::std::span<const std::int32_t> coordinates,
                                             cuda::std::span<const std::byte> tile,
                                             std::uint32_t shared_address = 0) const;

 private:
  cuda::std::span<const memory_window> windows_;
};

enum class fidelity : std::uint32_t { documented_only, verified_on_hardware };

/// How far one feature may be trusted: `cases` tiles agreed with the hardware byte for byte.
struct feature_fidelity {
  const char* feature{};
  simulator::fidelity fidelity{};
  std::uint64_t cases{};
};

/// One row for each feature of the model.
TMAP_API cuda::std::span<const feature_fidelity> fidelity_table();

}  // namespace tmap::simulator
