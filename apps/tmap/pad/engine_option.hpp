// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/tmap/pad/engine.hpp"

namespace tmap::tool {

/// Adds the option `--engine` with the words auto, gpu and `without_gpu`. `work` begins its help.
void add_engine_option(CLI::App& app, engine_request& request, const std::string& work,
                       const std::string& without_gpu = "simulator");

}  // namespace tmap::tool
