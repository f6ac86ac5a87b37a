// SPDX-License-Identifier: Apache-2.0
#pragma once

// Encodes maps without tmap: one driver call per map on the host, then one copy to the device.

#include <cuda.h>
#include <tmap/map_patch.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda_runtime_api.h>

#include <vector>

#include "apps/bench/encode/batches.hpp"
#include "apps/bench/encode/pinned_array.hpp"

namespace tmap::apps::bench {

class host_encoder {
 public:
  host_encoder(const patch_case& shape, const std::vector<map_patch>& patches);

  /// Encodes from patches that the host has.
  void encode(tensor_map* slots, cudaStream_t stream) const;
  /// Encodes from patches on the device: copies them to the host first and waits.
  void encode_from(const map_patch* patches_on_device, tensor_map* slots, cudaStream_t stream) const;

 private:
  patch_case shape_;
  tensor_spec spec_;
  std::uint64_t count_;
  pinned_array<map_patch> patches_;
  pinned_array<CUtensorMap> maps_;
  decltype(&cuTensorMapEncodeTiled) encode_tiled_;
};

}  // namespace tmap::apps::bench
