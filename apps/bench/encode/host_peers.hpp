// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps made as CUDA offers it: one driver call a map on the host, then one copy to the device.

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

  /// The patches are known on the host.
  void encode(tensor_map* slots, cudaStream_t stream) const;
  /// They are on the device: they are copied to the host first, and waited for.
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
