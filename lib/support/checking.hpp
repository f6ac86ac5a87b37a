// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/error.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::support {

/// Parses a value of TMAP_CHECK; null means that it is not set.
[[nodiscard]] result<fault_check> check_setting(const char* word);

/// Checks the option of a call, and the environment variable if the option defers to it.
void check_fault_check(arguments& given, fault_check asked, const argument& name);

/// Whether a call with this option, which `check_fault_check` has passed, is checked.
bool is_checked(fault_check asked);

/// Returns the number of the next call. Thread-safe.
std::uint64_t next_call_number();

}  // namespace tmap::support
