// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/validate.hpp>

namespace tmap::detail {

/// Returns an error with the findings of `validate`: every rule, and the values of the first one of
/// severity `error`, or of the first warning if there is no error.
inline error error_of(status code, const violations& found) {
  error e{.code = code, .rules = found.rules()};
  const violation* first = nullptr;
  for (const violation& v : found) {
    if (first == nullptr || (is_warning(first->id) && !is_warning(v.id))) first = &v;
  }
  if (first != nullptr) {
    e.first = first->id;
    e.axis = first->axis;
    e.found = first->found;
    e.allowed = first->allowed;
  }
  return e;
}

inline bool has_error(const violations& found) {
  for (const violation& v : found) {
    if (!is_warning(v.id)) return true;
  }
  return false;
}

}  // namespace tmap::detail
