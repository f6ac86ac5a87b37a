// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/status.h>
#include <tmap/bad_items.hpp>

#include "lib/interop/call.hpp"

namespace tmap::interop {

static_assert(TMAP_CHECK_DEFAULT == static_cast<int>(fault_check::environment));
static_assert(TMAP_CHECK_OFF == static_cast<int>(fault_check::off));
static_assert(TMAP_CHECK_SYNC == static_cast<int>(fault_check::sync));

inline tmap_bad_item c_item_of(const bad_item& from) {
  return {static_cast<std::uint32_t>(from.call), 0, from.number, from.index, from.bits};
}
inline bad_item item_of(const tmap_bad_item& from) {
  return {static_cast<batch_call>(from.call), from.number, from.index, from.bits};
}

/// Of options that were given.
template <class Options>
void check_check(arguments& given, const Options* options, const support::argument& name) {
  if (given && options != nullptr) given.enumerator(options->check, TMAP_CHECK_SYNC, name);
}
template <class Options>
fault_check check_of(const Options& options) {
  return static_cast<fault_check>(options.check);
}

}  // namespace tmap::interop
