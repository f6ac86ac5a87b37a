// SPDX-License-Identifier: Apache-2.0
// Runs every sample and prints whether its result is right. Requires a GPU.

#include "apps/samples/kernel_samples/samples.hpp"
#include "apps/support/command_line.hpp"
#include "apps/support/device.hpp"

#include <cstdio>

namespace {

struct sample {
  const char* name;
  bool (*run)();
};

constexpr sample all_samples[] = {
    {"bulk_copy", samples::bulk_copy},           {"bulk_reduce", samples::bulk_reduce},
    {"cache_hints", samples::cache_hints},       {"cluster_queue", samples::cluster_queue},
    {"copy_async", samples::copy_async},         {"im2col", samples::im2col},
    {"send_to_block", samples::send_to_block},   {"stage_ring", samples::stage_ring},
    {"store_to_block", samples::store_to_block}, {"tile_load_store", samples::tile_load_store},
    {"tile_multicast", samples::tile_multicast}, {"tile_prefetch", samples::tile_prefetch},
    {"tile_reduce", samples::tile_reduce},       {"tile_transpose", samples::tile_transpose},
    {"work_queue", samples::work_queue},
};

}  // namespace

int main(int argc, char** argv) {
  if (const auto ended = tmap::apps::parse_command_line(
          "kernel_samples", "Runs each sample of a kernel and prints whether its result is right", argc, argv)) {
    return *ended;
  }
  if (!tmap::apps::has_hopper()) return tmap::apps::lack_of_hopper("kernel_samples");
  bool all_right = true;
  for (const sample& one : all_samples) {
    const bool right = one.run();
    std::printf("%-16s %s\n", one.name, right ? "right" : "wrong");
    all_right = all_right && right;
  }
  return all_right ? 0 : 1;
}
