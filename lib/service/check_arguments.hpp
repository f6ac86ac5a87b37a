// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_status.hpp>
#include <tmap/map_service.hpp>

#include "lib/encode/batch_checks.hpp"
#include "lib/service/make_batch.hpp"

namespace tmap::service {

/// What the encoder would refuse of a call, for before slots are taken: a captured call cannot give them back.
template <class Source>
result<void> check_arguments(const map_template& base, const Source& source, const encode_request& request) {
  static batch_header any_header;
  if (const result<void> checked = check_template(base); !checked) return checked;
  if (const result<void> checked = check_source(base, source); !checked) return checked;
  return check_options(options_of(request, nullptr, request.header ? &any_header : nullptr));
}

}  // namespace tmap::service
