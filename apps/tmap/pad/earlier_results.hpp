// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/outcome.hpp"

#include <filesystem>
#include <string>
#include <vector>

// The folder of results holds those of one run: what an earlier run left there goes, and nothing
// else does.

namespace tmap::tool {

inline constexpr const char* report_name = "report.json";
inline constexpr const char* contact_sheet_name = "contact_sheet.png";

/// Returns the report of an earlier run in `folder`, and the results that it lists. Only these may
/// be removed. Empty if there is none. Fails if report.json is not one of this tool's. Also fails
/// if a file has the name of a result but no report lists it, because it would be taken for a
/// result of this run.
outcome<std::vector<std::filesystem::path>> find_earlier_results(const std::filesystem::path& folder);

/// Fails if an input is the folder of the results, or a file in it with the name of a result. So a
/// run never reads what another one wrote there, nor removes what it reads.
outcome<void> check_inputs_apart(const std::vector<std::string>& inputs, const std::filesystem::path& folder);

}  // namespace tmap::tool
