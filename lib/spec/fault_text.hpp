// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include <string>

namespace tmap::detail {

/// Returns the sentence of an error of status `bad_items`.
std::string bad_items_sentence(const error& e);

}  // namespace tmap::detail
