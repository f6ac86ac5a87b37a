// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/encode/host_peers.hpp"

#include <algorithm>
#include <iterator>

namespace tmap::apps::bench {
namespace {

decltype(&cuTensorMapEncodeTiled) find_encode_tiled() {
  void* symbol = nullptr;
  cudaDriverEntryPointQueryResult found{};
  require(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol, 12000, cudaEnableDefault, &found));
  require(found == cudaDriverEntryPointSuccess);
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(symbol);
}

}  // namespace

host_encoder::host_encoder(const patch_case& shape, const std::vector<map_patch>& patches)
    : shape_{shape},
      spec_{make_base(shape).spec},
      count_{patches.size()},
      patches_{patches.size()},
      maps_{patches.size()},
      encode_tiled_{find_encode_tiled()} {
  std::copy(patches.begin(), patches.end(), patches_.get());
}

void host_encoder::encode(tensor_map* slots, cudaStream_t stream) const {
  const bool box_changes = has_any(shape_.fields, patch_box(0));
  for (std::uint64_t i = 0; i < count_; ++i) {
    const map_patch& patch = patches_.get()[i];
    cuuint64_t dims[max_rank];
    cuuint64_t strides[max_rank - 1];
    cuuint32_t element_strides[max_rank];
    std::copy(std::begin(patch.global_dim), std::end(patch.global_dim), dims);
    std::copy(std::begin(patch.global_stride_bytes), std::end(patch.global_stride_bytes), strides);
    std::copy(std::begin(patch.element_stride), std::end(patch.element_stride), element_strides);
    const CUresult code =
        encode_tiled_(&maps_.get()[i], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, shape_.rank,
                      reinterpret_cast<void*>(patch.global_address.value()), dims, strides,
                      box_changes ? patch.box_dim : spec_.box_dim, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    require(code == CUDA_SUCCESS);
  }
  require(cudaMemcpyAsync(slots, maps_.get(), count_ * sizeof(CUtensorMap), cudaMemcpyHostToDevice, stream));
}

void host_encoder::encode_from(const map_patch* patches_on_device, tensor_map* slots, cudaStream_t stream) const {
  require(
      cudaMemcpyAsync(patches_.get(), patches_on_device, count_ * sizeof(map_patch), cudaMemcpyDeviceToHost, stream));
  require(cudaStreamSynchronize(stream));
  encode(slots, stream);
}

}  // namespace tmap::apps::bench
