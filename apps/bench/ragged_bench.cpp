// SPDX-License-Identifier: Apache-2.0
// Ragged operations beside their peers and goals. Prints Markdown.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "apps/bench/device.hpp"
#include "apps/bench/ragged_case.hpp"

namespace {

using namespace tmap::bench;

struct named_table {
  const char* name;
  void (*print)(const ragged_meter& meter);
};
void print_breakdown(const ragged_meter&) {
  fmt::print(R"(
Where the time goes: microseconds in graphs of five calls. Planning alone and work alone are the same captured launches
with the others taken out, so that their launches no longer overlap: planning and work together may be longer than
the whole. "Launches" are those of planning.
)");
  const ragged_meter meter(columns_wanted::parts);
  for (const auto print : {print_copy, print_pad, print_transpose, print_vectors}) print(meter);
}

constexpr named_table tables[] = {{"copy", print_copy},
                                  {"pad", print_pad},
                                  {"transpose", print_transpose},
                                  {"vectors", print_vectors},
                                  {"breakdown", print_breakdown}};

void print_head() {
  print_device();
  fmt::print(R"(
GB/s, bytes read and bytes written, medians. Stream: events around one call, 9 times. Graph: events around a captured
chain of five, divided by five, 5 times; goals and peers are of the graph, cudaMemcpyAsync's of
whichever is faster. A named route: only it and `plain` are allowed.
Results are checked on the device before they are timed: bytes against their source, values against plain kernels.
)");
}

int run(int argc, char** argv) {
  CLI::App app{"Ragged operations beside their peers and goals. Prints Markdown.", "ragged_bench"};
  std::vector<std::string> names;
  for (const named_table& t : tables) names.emplace_back(t.name);
  std::vector<std::string> wanted = names;
  bool each_route = false;
  std::string curve;
  app.add_option("-t,--table", wanted, "Only these tables")->check(CLI::IsMember(names))->delimiter(',');
  app.add_flag("-r,--routes", each_route, "Each case by each route, too");
  app.add_option("-c,--curve", curve, "No tables: GB/s against the size of a tensor, as JSON in this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (!has_hopper()) {
    fmt::print(stderr, "ragged_bench needs a GPU of compute capability 9.\n");
    return 1;
  }
  wake_device();
  const ragged_meter meter(each_route ? columns_wanted::rates_by_route : columns_wanted::rates);
  if (!curve.empty()) {
    write_curve(meter, curve);
    return 0;
  }
  print_head();
  for (const named_table& t : tables) {
    if (std::find(wanted.begin(), wanted.end(), t.name) != wanted.end()) t.print(meter);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "ragged_bench: {}\n", e.what());
    return 1;
  }
}
