// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <vector>

#include "apps/tmap/spec_input.hpp"

namespace tmap::tool {

/// Adds the flags that describe a spec; returns those that fill `words`, which must outlive the
/// parse.
std::vector<CLI::Option*> add_spec_flags(CLI::App& command, spec_words& words);

}  // namespace tmap::tool
