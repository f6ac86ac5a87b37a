// SPDX-License-Identifier: Apache-2.0
// Measures the cost of encoding tensor maps, its floors and its alternatives. Prints Markdown.
#include <fmt/format.h>

#include "apps/bench/common/run_tables.hpp"
#include "apps/bench/encode/tables.hpp"
#include "apps/support/device.hpp"

namespace {

using namespace tmap::apps;
using namespace tmap::apps::bench;

constexpr named_table<timer> tables[] = {
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

}  // namespace

int main(int argc, char** argv) {
  table_program program(
      {"encode_bench", "Measures the cost of encoding tensor maps, its floors and its alternatives. Prints Markdown.",
       "Only these tables; each is measured separately"},
      tables);
  return program.run(argc, argv, [&] {
    print_head();
    program.print(tables, timer{});
  });
}
