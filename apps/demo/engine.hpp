// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/rule.hpp>
#include <tmap/tensor_map.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/demo/batch.hpp"
#include "apps/tmap/pad/outcome.hpp"

namespace tmap::demo {

/// Every byte of a tile holds this before its load, so that bytes which no copy writes are the same
/// on both engines.
inline constexpr unsigned char poison = 0xA5;

/// Holds the judgement of one tensor, and its map.
struct verdict {
  rule_set broken;  ///< rules that refuse the map
  bool is_empty{};  ///< a dim is 0: no error, and nothing to move
  std::optional<tensor_map> map;
};

/// Holds the seconds of the parts of a run.
struct run_times {
  double encode{};
  double copy{};
  std::optional<double> ceiling;  ///< a plain copy of as many bytes in the same memory, on a GPU
};

/// Holds a whole run: maps encoded, tiles moved through them.
struct engine_run {
  std::string engine;             ///< "simulator" or "GPU"
  std::string device;             ///< name of the GPU, or empty
  std::uint64_t base{};           ///< address at which the batch's memory begins
  std::vector<verdict> verdicts;  ///< one for each tensor
  std::vector<std::byte> tiles;   ///< each tile at its `demo_tile::offset`
  run_times seconds;
};

/// Encodes and copies on the CPU.
tool::outcome<engine_run> run_in_simulator(const demo_batch& batch);

/// Encodes by `encode_batch` and copies by a kernel. Fails in a build without kernels.
tool::outcome<engine_run> run_on_gpu(const demo_batch& batch);

}  // namespace tmap::demo
