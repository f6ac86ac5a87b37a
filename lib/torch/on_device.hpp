// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/torch/tensor_view.hpp"

#include <cstdint>
#include <optional>

namespace tmap::pytorch {

/// Makes a tensor's device the current one for as long as it lives, if it is one of CUDA and not
/// already the current one.
class on_device {
 public:
  explicit on_device(const tensor_view& of) {
    if (!of.is_on_cuda()) return;
    const std::int32_t current = torch::stable::accelerator::getCurrentDeviceIndex();
    if (current != of.device) guard_.emplace(of.device);
  }

 private:
  std::optional<torch::stable::accelerator::DeviceGuard> guard_;
};

}  // namespace tmap::pytorch
