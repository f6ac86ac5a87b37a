// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/tensor.hpp"

#include <fmt/ranges.h>

namespace tmap::tool {

std::string to_string(const shape_t& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

outcome<std::uint64_t> check_shape(const shape_t& shape, dtype type, std::uint64_t file_bytes) {
  const auto wanted = dense_bytes(shape, type);
  if (!wanted) return refuse("shape {} is larger than any memory", to_string(shape));
  if (file_bytes < *wanted) {
    return refuse("it is truncated: {} of {} bytes of data are there", file_bytes, *wanted);
  }
  if (file_bytes > *wanted) return refuse("it holds {} bytes of data, its shape needs {}", file_bytes, *wanted);
  return *wanted;
}

}  // namespace tmap::tool
