// SPDX-License-Identifier: Apache-2.0
#include "lib/torch/operators.hpp"

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <array>

namespace tmap::pytorch {

namespace stable = torch::stable::detail;

Tensor packed(const Tensor& tensor) {
  return view_of(tensor).is_packed() ? tensor : torch::stable::contiguous(tensor);
}

Tensor batched_product(const Tensor& a, const Tensor& b) {
  std::array<StableIValue, 2> stack{stable::from(a), stable::from(b)};
  TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::bmm", "", stack.data(), TORCH_ABI_VERSION));
  return stable::to<Tensor>(stack[0]);
}

Tensor running_sum(const Tensor& numbers) {
  std::array<StableIValue, 3> stack{stable::from(numbers), stable::from(std::int64_t{0}),
                                    stable::from(std::optional<ScalarType>{})};
  TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::cumsum", "", stack.data(), TORCH_ABI_VERSION));
  return stable::to<Tensor>(stack[0]);
}

std::int32_t type_number(ScalarType type) {
  return stable::to<std::int32_t>(stable::from(type));
}

}  // namespace tmap::pytorch
