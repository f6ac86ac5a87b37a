// SPDX-License-Identifier: Apache-2.0
// Compares ragged operations with their peers and goals. Prints Markdown.
#include <fmt/format.h>

#include <string>

#include "apps/bench/common/run_tables.hpp"
#include "apps/bench/ragged/ragged_case.hpp"
#include "apps/support/device.hpp"

namespace {

using namespace tmap::apps;
using namespace tmap::apps::bench;

void print_breakdown(const ragged_meter&) {
  fmt::print(R"(
Where the time goes: microseconds in graphs of five calls. Planning alone and work alone are the same captured launches
with the others taken out, so that their launches no longer overlap: planning and work together may be longer than
the whole. "Launches" are those of planning.
)");
  const ragged_meter meter(columns_wanted::parts);
  for (const auto print : {print_copy, print_pad, print_transpose, print_vectors, print_quantize}) print(meter);
}

constexpr named_table<ragged_meter> tables[] = {{"copy", print_copy},           {"pad", print_pad},
                                                {"transpose", print_transpose}, {"vectors", print_vectors},
                                                {"quantize", print_quantize},   {"breakdown", print_breakdown}};

void print_head() {
  print_device();
  fmt::print(R"(
GB/s, bytes read and bytes written, medians. Stream: events around one call, 9 times. Graph: events around a captured
chain of five, divided by five, 5 times; goals and peers are of the graph, cudaMemcpyAsync's of
whichever is faster. Memory: cudaMemcpyAsync's rate; of saxpy that of a plain kernel, which reads two streams and writes
one. A named route: only it and `plain` are allowed.
Results are checked on the device before they are timed: bytes against their source, values against plain kernels.
)");
}

}  // namespace

int main(int argc, char** argv) {
  table_program program(
      {"ragged_bench", "Compares ragged operations with their peers and goals. Prints Markdown.", "Only these tables"},
      tables);
  bool each_route = false;
  std::string curve;
  program.options().add_flag("-r,--routes", each_route, "Also measure each case by each route");
  program.options().add_option("-c,--curve", curve,
                               "Instead of tables, write GB/s over the size of a tensor to this file, as JSON");
  return program.run(argc, argv, [&] {
    const ragged_meter meter(each_route ? columns_wanted::rates_by_route : columns_wanted::rates);
    if (!curve.empty()) return write_curve(meter, curve);
    print_head();
    program.print(tables, meter);
  });
}
