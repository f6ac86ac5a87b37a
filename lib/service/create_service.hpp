// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_service.hpp>

#include "lib/service/service_calls.hpp"

namespace tmap::service {

/// `map_service::create` over any set of calls, which must outlive the service and its batches.
[[nodiscard]] result<map_service> create_service(const service_options& options, const service_calls& calls) noexcept;

}  // namespace tmap::service
