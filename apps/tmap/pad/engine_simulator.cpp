// SPDX-License-Identifier: Apache-2.0
#include <tmap/decode.hpp>
#include <tmap/simulator.hpp>

#include "apps/tmap/pad/engine.hpp"
#include "apps/tmap/pad/stopwatch.hpp"
#include "apps/tmap/progress.hpp"

#include <array>
#include <cstring>

namespace tmap::tool {
namespace {

constexpr std::uint64_t source_base = std::uint64_t{1} << 32;
constexpr std::uint64_t destination_base = std::uint64_t{1} << 46;

/// The corners of a tensor's boxes, one after the other.
class box_grid {
 public:
  explicit box_grid(const tensor_spec& spec) : spec_{spec} {}

  cuda::std::span<const std::int32_t> corner() const { return {corner_.data(), spec_.rank}; }

  bool advance() {
    for (std::uint32_t axis = 0; axis < spec_.rank; ++axis) {
      const std::uint64_t next = static_cast<std::uint64_t>(corner_[axis]) + spec_.box_dim[axis];
      corner_[axis] = next < spec_.global_dim[axis] ? static_cast<std::int32_t>(next) : 0;
      if (corner_[axis] != 0) return true;
    }
    return false;
  }

 private:
  const tensor_spec& spec_;
  std::array<std::int32_t, max_rank> corner_{};
};

/// Those of tensors without elements stay zeroed: nobody loads through them.
result<std::vector<tensor_map>> encode_all(const batch_plan& plan, std::vector<tensor_spec> specs, std::uint64_t base) {
  std::vector<tensor_map> maps(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (plan.is_empty(i)) continue;
    specs[i].global_address += base;
    const auto map = encode_bits(specs[i]);
    if (!map) return failure{map.error()};
    maps[i] = *map;
  }
  return maps;
}

result<void> copy_tensor(const simulator::copy_engine& copier, const tensor_map& source, const tensor_map& destination,
                         const tensor_spec& extents, cuda::std::span<std::byte> tile) {
  box_grid grid{extents};
  do {
    const auto loaded = copier.load(source, grid.corner(), tile);
    if (!loaded) return failure{loaded.error()};
    const auto stored = copier.store(destination, grid.corner(), tile);
    if (!stored) return failure{stored.error()};
  } while (grid.advance());
  return {};
}

}  // namespace

outcome<copy_times> copy_on_simulator(const copy_job& job) {
  const batch_plan& plan = job.plan;
  if (!plan.by_maps) return pad_on_host(job);
  std::memset(job.destinations.data(), poison, job.destinations.size());
  copy_times times;
  stopwatch watch;
  const auto sources = encode_all(plan, plan.sources, source_base);
  if (!sources) return refuse("{}", to_string(sources.error()));
  const auto destinations = encode_all(plan, plan.destinations, destination_base);
  if (!destinations) return refuse("{}", to_string(destinations.error()));
  times.encode = watch.lap();

  // The engine loads from the first window and never writes it.
  auto* readable = const_cast<std::byte*>(job.sources.data());
  const std::array<simulator::memory_window, 2> windows{
      {{source_base, {readable, job.sources.size()}},
       {destination_base, {job.destinations.data(), job.destinations.size()}}}};
  const simulator::copy_engine copier{{windows.data(), windows.size()}};
  std::vector<std::byte> tile(tile_footprint_bytes(plan.tile));
  progress bar{"copying", plan.sources.size()};
  const std::uint64_t place_bytes = plan.destination_bytes / plan.members.size();
  for (std::size_t i = 0; i < plan.sources.size(); ++i) {
    bar.advance(1);
    if (plan.is_empty(i)) {
      std::memset(job.destinations.data() + plan.destinations[i].global_address, 0, place_bytes);
      continue;
    }
    const auto copied =
        copy_tensor(copier, (*sources)[i], (*destinations)[i], plan.destinations[i], {tile.data(), tile.size()});
    if (!copied) return refuse("{}", to_string(copied.error()));
  }
  times.copy = watch.lap();
  return times;
}

}  // namespace tmap::tool
