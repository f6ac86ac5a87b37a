// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda/std/expected>

#include <fmt/format.h>

#include <string>
#include <utility>

namespace tmap::tool {

/// A value, or one sentence that states what is wrong.
template <class T>
using outcome = cuda::std::expected<T, std::string>;

using refusal = cuda::std::unexpected<std::string>;

/// `return refuse("...", ...)` from a function that returns an outcome.
template <class... Args>
refusal refuse(fmt::format_string<Args...> text, Args&&... args) {
  return refusal{fmt::format(text, std::forward<Args>(args)...)};
}

}  // namespace tmap::tool
