// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/tile_case.hpp"

#include <tmap/error.hpp>

#include <cuda/std/span>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace tmap::conformance {

/// Holds everything that one case wrote.
struct outcome {
  result<void> finished{};
  std::uint64_t barrier_bytes{};              ///< counts the bytes of a load
  cuda::std::span<const std::byte> arena{};   ///< arena_bytes of global memory
  cuda::std::span<const std::byte> shared{};  ///< shared_bytes, including the tile
};

/// Digests barrier bytes, arena and shared memory into one number.
std::uint64_t digest(const outcome& left);

/// Copies tiles, on the simulator or a GPU. Before each case, the arena and, for stores, shared
/// memory hold `contents` of the case's type. Before a load, shared memory is poisoned.
class tile_engine {
 public:
  virtual ~tile_engine() = default;

  /// Returns an empty text if the engine can run here, else the reason why it cannot.
  virtual std::string unavailable() const { return {}; }

  /// Runs every case and reports each once, in order. The spans are valid only during the call to
  /// `report`.
  virtual void run(cuda::std::span<const tile_case> cases,
                   const std::function<void(std::size_t, const outcome&)>& report) = 0;
};

using engine_factory = std::unique_ptr<tile_engine> (*)();

std::unique_ptr<tile_engine> make_simulator_engine();
std::unique_ptr<tile_engine> make_gpu_engine();

}  // namespace tmap::conformance
