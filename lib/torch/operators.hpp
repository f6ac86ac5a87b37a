// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operators of PyTorch, which python/tmap/torch_ops.py describes, for tensors on CUDA. They
// enqueue on the current stream. They throw where those in Python raise. Padding is for the CPU,
// too.

#include "lib/torch/tensor_view.hpp"

#include <optional>
#include <string>

namespace tmap::pytorch {

using torch::headeronly::ScalarType;

Tensor grouped_mm(const Tensor& a, const Tensor& b, const std::optional<Tensor>& offs,
                  const std::optional<Tensor>& bias, std::optional<ScalarType> out_dtype, bool zero_rest);

Tensor grouped_scaled_mm(const Tensor& a, const Tensor& b, const Tensor& a_scales, const Tensor& b_scales,
                         const Tensor& offs, const std::optional<Tensor>& bias, std::optional<ScalarType> out_dtype,
                         bool fast_accumulation, bool zero_rest);
Tensor pad_ragged(const Tensor& values, const Tensor& offsets, std::int64_t max_length, double fill,
                  const std::string& format);
Tensor unpad_ragged(const Tensor& dense, const Tensor& offsets, std::int64_t total, const std::string& format);

/// Returns the sums of the elements up to each, as int64.
Tensor running_sum(const Tensor& numbers);
/// Returns the tensor, or a copy whose elements follow each other.
Tensor packed(const Tensor& tensor);
Tensor batched_product(const Tensor& a, const Tensor& b);
/// Returns the number that PyTorch's C functions have for a type.
std::int32_t type_number(ScalarType type);

}  // namespace tmap::pytorch
