// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/patch_source.cuh>

#include "kernels/encode/encode_kernel.cuh"
#include "kernels/launch.hpp"

namespace tmap::kernels {

template <class Offset>
cudaError_t launch_encode(const encode_plan& plan, const map_template& base, const ragged_rows<Offset>& source,
                          const std::int64_t* begins, tensor_map* slots, std::uint64_t count, cudaStream_t stream,
                          const encode_options& options) {
  const device::ragged_rows_reader<Offset> reader(source, begins);
  return launch_rows<device::ragged_rows_reader<Offset>>(
      {base, reader, options, slots, count, plan.maps_per_warp, stream});
}

template cudaError_t launch_encode(const encode_plan&, const map_template&, const ragged_rows<std::int32_t>&,
                                   const std::int64_t*, tensor_map*, std::uint64_t, cudaStream_t,
                                   const encode_options&);
template cudaError_t launch_encode(const encode_plan&, const map_template&, const ragged_rows<std::int64_t>&,
                                   const std::int64_t*, tensor_map*, std::uint64_t, cudaStream_t,
                                   const encode_options&);

}  // namespace tmap::kernels
