// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/common/run_tables.hpp"

#include <fmt/format.h>

#include <exception>

#include "apps/support/command_line.hpp"
#include "apps/support/device.hpp"

namespace tmap::apps::bench {

void table_program::offer_choice(const char* help) {
  const std::vector<std::string> names = wanted_;
  app_.add_option("-t,--table", wanted_, help)->check(CLI::IsMember(names))->delimiter(',');
}

int table_program::run(int argc, char** argv, const std::function<void()>& measure) {
  if (const auto ended = parse_command_line(app_, argc, argv)) return *ended;
  try {
    if (!has_hopper()) return lack_of_hopper(app_.get_name().c_str());
    wake_device();
    measure();
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", app_.get_name(), e.what());
    return 1;
  }
  return 0;
}

}  // namespace tmap::apps::bench
