// SPDX-License-Identifier: Apache-2.0
// What making tensor maps costs, beside its floors and its peers. Prints Markdown.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "apps/bench/device.hpp"
#include "apps/bench/tables.hpp"

namespace {

using namespace tmap::bench;

struct named_table {
  const char* name;
  void (*print)(const timer& clock);
};

constexpr named_table tables[] = {
    {"goals", print_goals},     {"formats", print_formats}, {"peers", print_peers},
    {"judging", print_judging}, {"fused", print_fused},     {"service", print_service},
};

void print_head() {
  print_device();
  fmt::print(R"(
Patches: few = address, two dims and a stride of rank 2; extents = address, dims and strides of rank 5; all = also boxes
and element strides, 23 fields. All times are medians. Stream: events around one call on an idle stream, 201 times; what
the host needs to enqueue it is in it where the GPU has to wait for that. Graph: events around a captured chain of a
hundred, divided by a hundred, 25 times. Call: the host's clock around the call alone, 1,000 times.
)");
}

int run(int argc, char** argv) {
  CLI::App app{"What making tensor maps costs, beside its floors and its peers. Prints Markdown.", "encode_bench"};
  std::vector<std::string> names;
  for (const named_table& t : tables) names.emplace_back(t.name);
  std::vector<std::string> wanted = names;
  app.add_option("-t,--table", wanted, "Only these tables, of which each is measured on its own")
      ->check(CLI::IsMember(names))
      ->delimiter(',');
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (!has_hopper()) {
    fmt::print(stderr, "encode_bench needs a GPU of compute capability 9.\n");
    return 1;
  }
  wake_device();
  print_head();
  const timer clock;
  for (const named_table& t : tables) {
    if (std::find(wanted.begin(), wanted.end(), t.name) != wanted.end()) t.print(clock);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "encode_bench: {}\n", e.what());
    return 1;
  }
}
