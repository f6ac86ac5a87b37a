// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks the members of every `batch_run` (batch_run.hpp). Callers set its members by name, so
// complaints name only the member: "statuses", "scratch.memory".

#include <tmap/batch_run.hpp>

#include <cstdint>

#include "lib/batch/workspace.hpp"
#include "lib/support/arguments.hpp"
#include "lib/support/checking.hpp"

namespace tmap {

template <class Fault, class Choices, class Where>
void check_run(support::arguments& given, const batch_run<Fault, Choices, Where>& run) {
  support::check_fault_check(given, run.check, "check");
  given.at_most(run.windows.size(), ~std::uint32_t{0}, "windows");
  if (!run.windows.empty()) given.pointer(run.windows.data(), "windows");
  given.optional_pointer(run.statuses, "statuses");
  given.optional_pointer(run.header, "header");
}

/// Checks the workspace of a call that needs `needed` bytes.
inline void check_scratch(support::arguments& given, const workspace& scratch, std::uint64_t needed) {
  const support::argument name{"scratch"};
  check_workspace(given, scratch.memory, scratch.bytes, needed, {name.member("memory"), name.member("bytes")});
}

}  // namespace tmap
