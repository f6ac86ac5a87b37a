// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/patch_source.cuh>

#include "kernels/encode/encode_kernel.cuh"
#include "kernels/launch.hpp"

namespace tmap::kernels {

cudaError_t launch_encode(const encode_plan& plan, const map_template& base, const patch_columns& source,
                          tensor_map* slots, std::uint64_t count, cudaStream_t stream, const encode_options& options) {
  const device::patch_columns_reader reader(source, base.fields);
  return launch_extents<device::patch_columns_reader>(
      {base, reader, options, slots, count, plan.maps_per_warp, stream});
}

cudaError_t launch_encode(const encode_plan& plan, const map_template& base, const compact_columns& source,
                          tensor_map* slots, std::uint64_t count, cudaStream_t stream, const encode_options& options) {
  const device::compact_columns_reader reader(source, base.fields);
  return launch_extents<device::compact_columns_reader>(
      {base, reader, options, slots, count, plan.maps_per_warp, stream});
}

}  // namespace tmap::kernels
