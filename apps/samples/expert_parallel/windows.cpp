// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <utility>

#include "apps/samples/expert_parallel/ranks.hpp"

namespace experts {

using tmap::apps::require;
using tmap::apps::value_of;

namespace {

std::vector<tmap::peer_memory> real_windows(const layer_sizes& sizes) {
  std::vector<int> gpus(sizes.ranks);
  std::iota(gpus.begin(), gpus.end(), 0);
  std::vector<tmap::peer_group> groups = value_of(tmap::peer_group::of_process(gpus));
  std::vector<tmap::peer_memory> windows;
  for (tmap::peer_group& each : groups) windows.push_back(value_of(each.allocate(rank_layer::window_bytes(sizes))));
  return windows;
}

std::vector<tmap::peer_memory> virtual_windows(const layer_sizes& sizes,
                                               std::vector<device_array<unsigned char>>& memory) {
  const std::uint64_t bytes = rank_layer::window_bytes(sizes);
  std::vector<tmap::device_address> addresses;
  for (std::uint32_t rank = 0; rank < sizes.ranks; ++rank) {
    memory.emplace_back(tmap::peer_header_bytes + bytes);
    memory.back().fill(0);
    addresses.push_back(memory.back().address());
  }
  std::vector<tmap::peer_memory> windows;
  for (std::uint32_t rank = 0; rank < sizes.ranks; ++rank) {
    tmap::peer_group group =
        value_of(tmap::peer_group::from_addresses(rank, addresses, tmap::peer_header_bytes + bytes));
    windows.push_back(value_of(group.allocate(bytes)));
  }
  return windows;
}

}  // namespace

std::vector<std::unique_ptr<rank_layer>> make_ranks(const layer_sizes& sizes, const layer_weights& weights,
                                                    std::vector<device_array<unsigned char>>& memory) {
  std::vector<tmap::peer_memory> windows = sizes.are_virtual ? virtual_windows(sizes, memory) : real_windows(sizes);
  std::vector<std::unique_ptr<rank_layer>> made;
  for (std::uint32_t rank = 0; rank < sizes.ranks; ++rank) {
    const int gpu = sizes.are_virtual ? 0 : static_cast<int>(rank);
    require(cudaSetDevice(gpu));
    made.push_back(std::make_unique<rank_layer>(sizes, rank, gpu, std::move(windows[rank]), weights));
  }
  for (auto& each : made) each->capture();
  return made;
}

}  // namespace experts
