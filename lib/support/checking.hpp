// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>
#include <tmap/error.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::support {

/// What this value of TMAP_CHECK asks for; null: it is not set.
[[nodiscard]] result<fault_check> check_setting(const char* word);

/// The option of a call, and the environment where the option leaves it to that.
void check_fault_check(arguments& given, fault_check asked, const argument& name);

/// Whether a call with this option, which `check_fault_check` has passed, is checked.
bool is_checked(fault_check asked);

/// The number of a call that begins now. Thread-safe.
std::uint64_t next_call_number();

}  // namespace tmap::support
