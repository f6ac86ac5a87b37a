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

/// Everything one case left behind.
struct outcome {
  result<void> finished{};
  std::uint64_t barrier_bytes{};              ///< of a load
  cuda::std::span<const std::byte> arena{};   ///< arena_bytes of global memory
  cuda::std::span<const std::byte> shared{};  ///< shared_bytes, the tile among them
};

/// Barrier bytes, arena and shared memory in one number.
std::uint64_t digest(const outcome& left);

/// Anything that copies tiles: the simulator, a GPU. Before each case the arena and, for stores,
/// shared memory hold `contents` of the case's type; shared memory is poisoned before a load.
class tile_engine {
 public:
  virtual ~tile_engine() = default;

  /// Empty when the engine can run here, else why not.
  virtual std::string unavailable() const { return {}; }

  /// Runs every case and reports each once, in order. The spans are valid during the call.
  virtual void run(cuda::std::span<const tile_case> cases,
                   const std::function<void(std::size_t, const outcome&)>& report) = 0;
};

using engine_factory = std::unique_ptr<tile_engine> (*)();

std::unique_ptr<tile_engine> make_simulator_engine();
std::unique_ptr<tile_engine> make_gpu_engine();

}  // namespace tmap::conformance
