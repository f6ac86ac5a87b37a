// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_service.hpp>

#include "lib/encode/encode_arguments.hpp"

namespace tmap::service {

/// Checks the arguments that the encoder would refuse, before slots are taken, because a captured
/// call cannot give them back.
inline void check_arguments(support::arguments& given, const map_template& base, const tensor_source& source,
                            const encode_run& run) {
  check_template(given, base);
  if (given) check_source(given, base, source);
  if (run.statuses != nullptr) {
    given.refuse("statuses", "is given; it must be null, because the batch's `ref()` has the statuses");
  }
  check_encode_run(given, run);
  check_owners(given, base, run);
}

}  // namespace tmap::service
