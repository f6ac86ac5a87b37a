// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/pool/pool_calls.hpp"
#include "lib/support/relaxed_capture.hpp"

namespace tmap::pool {

using relaxed_capture = support::relaxed_capture<pool_calls>;

}  // namespace tmap::pool
