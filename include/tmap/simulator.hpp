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

/// A piece of simulated global memory: `data` is at device address `base`.
struct memory_window {
  std::uint64_t base{};
  cuda::std::span<std::byte> data;
};

using tmap::reduction;

/// Simulates the copy engine on the CPU, for tiled maps. It reads the 128 bytes of a map as the
/// hardware does. It moves a tile between the given windows of memory and a buffer that stands for
/// shared memory at `shared_address`. That address is a multiple of 128, and the swizzle pattern
/// depends on it; use 0 for an aligned tile.
///
/// A copy that would break a CUDA context fails with the rule it breaks: `illegal_instruction`,
/// `misaligned_address`, or `illegal_memory_access` (a byte outside every window; `found` is its
/// address). A tile shorter than `tile_footprint_bytes` fails with `invalid_argument`. The
/// behaviour of the model was measured (docs/measurements/copy_engine_semantics.md). A 32-byte
/// interleave with another swizzle (T25) was not, and fails with `unsupported`. Owns nothing: the
/// windows must outlive it. Thread-safe as far as the windows' bytes are: two stores to the same
/// bytes race, as they do on the GPU.
class copy_engine {
 public:
  TMAP_API explicit copy_engine(cuda::std::span<const memory_window> memory) : windows_{memory} {}

  /// Fills `tile` with `tile_bytes`, spread over `tile_footprint_bytes`, and returns the bytes that
  /// the barrier receives. A failing load may have filled part of it.
  [[nodiscard]] TMAP_API result<std::uint64_t> load(const tensor_map& map,
                                                    cuda::std::span<const std::int32_t> coordinates,
                                                    cuda::std::span<std::byte> tile,
                                                    std::uint32_t shared_address = 0) const;

  /// Writes the part of `tile` that lies inside the tensor. Along dimension 0 it continues to the
  /// next multiple of 16 bytes, as the hardware does. A failing store may have written some bytes.
  [[nodiscard]] TMAP_API result<void> store(const tensor_map& map, cuda::std::span<const std::int32_t> coordinates,
                                            cuda::std::span<const std::byte> tile,
                                            std::uint32_t shared_address = 0) const;

  /// Combines the part of `tile` that lies inside the tensor with memory. Breaks rule U06 if the
  /// type lacks the operation.
  [[nodiscard]] TMAP_API result<void> reduce(reduction operation, const tensor_map& map,
                                             cuda::std::span<const std::int32_t> coordinates,
                                             cuda::std::span<const std::byte> tile,
                                             std::uint32_t shared_address = 0) const;

 private:
  cuda::std::span<const memory_window> windows_;
};

enum class fidelity : std::uint32_t { documented_only, verified_on_hardware };

/// The evidence for one feature: `cases` tiles agreed with the hardware byte for byte.
struct feature_fidelity {
  const char* feature{};
  simulator::fidelity fidelity{};
  std::uint64_t cases{};
};

/// Returns one row for each feature of the model.
TMAP_API cuda::std::span<const feature_fidelity> fidelity_table();

}  // namespace tmap::simulator
