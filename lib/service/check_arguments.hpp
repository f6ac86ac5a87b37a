// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>
#include <tmap/map_service.hpp>

#include "lib/encode/encode_arguments.hpp"
#include "lib/service/make_batch.hpp"

namespace tmap::service {

/// What the encoder would refuse of a call, for before slots are taken: a captured call cannot give them back.
template <class Source>
void check_arguments(support::arguments& given, const map_template& base, const Source& source,
                     const encode_request& request) {
  static batch_header any_header;
  check_template(given, base);
  if (given) check_source(given, base, source);
  check_options(given, options_of(request, nullptr, request.header ? &any_header : nullptr), "request");
}

}  // namespace tmap::service
