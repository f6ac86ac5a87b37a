// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/engine_option.hpp"

#include <vector>

namespace tmap::tool {

void add_engine_option(CLI::App& app, engine_request& request, const std::string& work,
                       const std::string& without_gpu) {
  const auto choose = [&request](const std::string& word) {
    request = word == "auto"  ? engine_request::automatic
              : word == "gpu" ? engine_request::gpu
                              : engine_request::simulator;
  };
  app.add_option_function<std::string>("--engine", choose, work + "; auto takes the GPU if there is one")
      ->check(CLI::IsMember(std::vector<std::string>{"auto", "gpu", without_gpu}))
      ->type_name("ENGINE");
}

}  // namespace tmap::tool
