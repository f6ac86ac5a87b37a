// SPDX-License-Identifier: Apache-2.0
#include "lib/torch/call.hpp"

#include "lib/torch/cuda_memory.hpp"

namespace tmap::pytorch {

Tensor new_tensor(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::int32_t type,
                  const tensor_view& like) {
  AtenTensorHandle made = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(),
                                                  type, like.device_type, like.device, &made));
  return Tensor{made};
}

bool are_offsets(const tensor_view& offsets) {
  return (offsets.type == types().i32 || offsets.type == types().i64) && offsets.rank == 1;
}

tmap_row_offsets describe_offsets(const tensor_view& offsets, std::uint32_t format) {
  tmap_row_offsets about{};
  about.values = offsets.pointer();
  about.format = format;
  about.bytes = offsets.type == types().i32 ? 4 : 8;
  return about;
}

tmap_call call_for(const tensor_view& of) {
  tmap_call call{};
  call.struct_size = sizeof call;
  if (of.is_on_cuda()) {
    call.stream = current_stream(of.device);
  } else {
    call.engine = TMAP_ON_HOST;
  }
  return call;
}

}  // namespace tmap::pytorch
