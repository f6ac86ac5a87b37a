// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tmap::testing {

/// Returns the text of docs/fields_and_rules.md, made from the rule table and the headers.
std::string rule_page();

}  // namespace tmap::testing
