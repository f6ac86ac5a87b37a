// SPDX-License-Identifier: Apache-2.0
// Measures copies of ragged batches of four size classes in three layouts.
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "apps/bench/ragged/ragged_batch.hpp"
#include "apps/bench/ragged/ragged_case.hpp"
#include "apps/bench/ragged/ragged_peers.hpp"

namespace tmap::apps::bench {
namespace {

struct size_class {
  const char* name;
  std::uint64_t count;
  std::uint64_t low;
  std::uint64_t high;
  double goal;
};
constexpr size_class classes[] = {
    {"100,000 of 256 B-4 KiB", 100'000, 256, 4096, 2000},
    {"32,165 of 1-64 KiB", 32'165, 1024, 65536, 3400},
    {"1,987 of 16 KiB-1 MiB", 1'987, 16384, 1 << 20, 3900},
    {"116 of 1-16 MiB", 116, 1 << 20, 16 << 20, 4000},
};

enum class style : std::uint32_t { aligned, odd, pitched };
constexpr const char* style_names[] = {"aligned", "odd sizes, odd bases", "pitched rows, odd"};

// Sizes of the aligned style are multiples of 16. In the pitched style, a row has about eight times
// the square root of the tensor's bytes.
std::vector<placed_tensor> tensors_of(const size_class& sizes, style how) {
  random_sizes random(17);
  std::vector<placed_tensor> tensors(sizes.count);
  for (placed_tensor& tensor : tensors) {
    const std::uint64_t bytes = random.between(sizes.low, sizes.high);
    tensor.dim[0] = how == style::aligned ? bytes / 16 * 16 : bytes | 1;
    if (how != style::pitched) continue;
    tensor.dim[0] = static_cast<std::uint64_t>(8 * std::sqrt(static_cast<double>(bytes))) | 1;
    tensor.dim[1] = (bytes + tensor.dim[0] - 1) / tensor.dim[0];
  }
  return tensors;
}

placement placement_of(style how) {
  if (how == style::aligned) return {16, 0, 0};
  return {16, 1, how == style::pitched ? std::uint64_t{3} : 0};
}

ragged_case copy_case(const std::string& name, const device_batch& source, const device_batch& destination) {
  return {name,
          source.tensors().size(),
          source.described().rank,
          2 * source.bytes(),
          [&](const ragged::run& with) { return ragged::copy(source.described(), destination.described(), with); },
          [&] { return count_differences(source.columns(), destination.columns(), false); },
          [&] { destination.memory().fill(0x5a); }};
}

void add_class(ragged_table& table, const ragged_meter& meter, const size_class& sizes) {
  double aligned = 0;
  for (const style how : {style::aligned, style::odd, style::pitched}) {
    const std::uint32_t rank = how == style::pitched ? 2 : 1;
    const device_batch source(tensors_of(sizes, how), 1, rank, placement_of(how));
    const device_batch destination(tensors_of(sizes, how), 1, rank, placement_of(how));
    fill_with_noise(source.memory());
    const ragged_case one = copy_case(
        fmt::format("{}, {} ({} MB)", sizes.name, style_names[static_cast<std::uint32_t>(how)], source.bytes() >> 20),
        source, destination);
    if (meter.wanted() == columns_wanted::parts) {
      table.add(one, {}, {});
      continue;
    }
    if (how == style::aligned) aligned = table.run(one, all_routes).graph;
    const cub_batched_copy cub(source, destination);
    const double peer = meter.gigabytes(2 * source.bytes(), [&](cudaStream_t stream) { cub.enqueue(stream); }).graph;
    const double goal = how == style::aligned ? sizes.goal : std::max(0.6 * aligned, peer);
    table.add(one, peer, {text(goal, 0), goal});
  }
}

// Measures the largest class only, because 100,000 copies would measure just the host. Runs on
// streams only.
void print_runtime_batch(const ragged_meter& meter) {
  const size_class& sizes = classes[std::size(classes) - 1];
  const device_batch source(tensors_of(sizes, style::aligned), 1, 1, placement_of(style::aligned));
  const device_batch destination(tensors_of(sizes, style::aligned), 1, 1, placement_of(style::aligned));
  fill_with_noise(source.memory());
  const runtime_batched_copy runtime(source, destination);
  const double rate = meter.stream_gigabytes(2 * source.bytes(), [&](cudaStream_t stream) { runtime.enqueue(stream); });
  require(count_differences(source.columns(), destination.columns(), false) == 0);
  fmt::print("\ncudaMemcpyBatchAsync, {}, aligned, on a stream: {:.0f} GB/s\n", sizes.name, rate);
}

// Measures tensors of 64 B to 16 MiB each, 256 MiB in total.
nlohmann::json curve_point(const ragged_table& table, const ragged_meter& meter, std::uint64_t bytes) {
  constexpr std::uint64_t total = std::uint64_t{256} << 20;
  std::vector<placed_tensor> tensors(total / bytes);
  for (placed_tensor& tensor : tensors) tensor.dim[0] = bytes;
  const device_batch source(tensors, 1, 1, {16, 0, 0});
  const device_batch destination(tensors, 1, 1, {16, 0, 0});
  fill_with_noise(source.memory());
  const ragged_case one = copy_case("", source, destination);
  nlohmann::json point{{"bytes", bytes}, {"chosen", table.run(one, all_routes).graph}};
  for (std::uint32_t r = 0; r < route_count; ++r) {
    const auto way = static_cast<route>(r);
    point[name(way)] = table.run(one, route_bit(way) | route_bit(route::plain)).graph;
  }
  const cub_batched_copy cub(source, destination);
  point["cub"] = meter.gigabytes(2 * total, [&](cudaStream_t stream) { cub.enqueue(stream); }).graph;
  return point;
}

}  // namespace

void print_copy(const ragged_meter& meter) {
  if (meter.wanted() != columns_wanted::parts) {
    fmt::print("\ncudaMemcpyAsync, 1 GiB: {:.0f} GB/s\n", meter.copy_rate(std::uint64_t{1} << 30));
    print_runtime_batch(meter);
  }
  ragged_table table("Copy", "cub::DeviceMemcpy::Batched", meter);
  for (const size_class& sizes : classes) add_class(table, meter, sizes);
  table.print();
}

void write_curve(const ragged_meter& meter, const std::string& path) {
  const ragged_table table("", "", meter);
  nlohmann::json points = nlohmann::json::array();
  for (std::uint64_t bytes = 64; bytes <= (16u << 20); bytes *= 4) points.push_back(curve_point(table, meter, bytes));
  const nlohmann::json all{{"memcpy", meter.copy_rate(std::uint64_t{256} << 20)}, {"points", points}};
  std::ofstream file(path);
  file << all.dump(1) << '\n';
  require(file.good());
}

}  // namespace tmap::apps::bench
