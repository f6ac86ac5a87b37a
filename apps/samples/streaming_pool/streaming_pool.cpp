// SPDX-License-Identifier: Apache-2.0
// Computes the envelope of a signal (a sliding maximum) and the distance of the signal from it
// (saxpy). These are classic exercises for asynchronous copies. Compares the times with a plain
// copy and draws the result.
#include "apps/samples/ragged_engine/ragged_engine.hpp"
#include "apps/support/command_line.hpp"
#include "apps/support/picture/picture.hpp"
#include "apps/tmap/pad/inputs.hpp"
#include "apps/tmap/pad/output_file.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace {

using namespace tmap;
using namespace tmap::tool;

struct request_t {
  std::string input;
  std::string picture;
  std::string out;
  std::uint64_t samples{1 << 20};
  std::uint32_t seed{1};
  std::uint32_t radius{15};
  engine_request engine{};
};

/// Returns a slow swell with faster beats and some noise.
std::vector<float> make_signal(std::uint64_t samples, std::uint32_t seed) {
  std::mt19937 random{seed};
  std::vector<float> signal(samples);
  for (std::uint64_t i = 0; i < samples; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(samples);
    const double noise = static_cast<double>(random()) / 4294967296.0 - 0.5;
    signal[i] =
        static_cast<float>((0.55 + 0.4 * std::sin(6.3 * t)) * std::sin(400 * t) * std::cos(35 * t) + 0.15 * noise);
  }
  return signal;
}

outcome<std::vector<float>> read_signal(const request_t& request) {
  if (request.input.empty()) return make_signal(request.samples, request.seed);
  const loaded_inputs loaded = read_inputs({request.input}, std::uint64_t{8} << 30, false);
  if (!loaded.failures.empty()) return refusal{loaded.failures.front()};
  const tensor& t = loaded.tensors.front();
  if (t.type != dtype::f32) return refuse("{}: its numbers are {}, not f32", t.name, info(t.type).name);
  if (t.bytes.empty()) return refuse("{}: it holds no numbers", t.name);
  std::vector<float> signal(t.bytes.size() / sizeof(float));
  std::copy(t.bytes.begin(), t.bytes.end(), std::as_writable_bytes(std::span{signal}).begin());
  return signal;
}

struct outputs {
  std::vector<float> envelope;
  std::vector<float> below;
};

/// Returns the rate of the second run, because the first also loads the kernel.
template <class Operation>
outcome<void> measure(const char* what, std::uint64_t bytes, Operation operation) {
  auto seconds = operation();
  if (seconds) seconds = operation();
  if (!seconds) return refusal{seconds.error()};
  fmt::print("{:<12} {:>10.3f} ms {:>9.1f} GB/s\n", what, 1000 * *seconds, static_cast<double>(bytes) / *seconds / 1e9);
  return {};
}

outcome<outputs> process(const ragged_engine& engine, const std::vector<float>& signal, std::uint32_t radius) {
  const std::uint64_t bytes = signal.size() * sizeof(float);
  const auto source = engine.upload(std::as_bytes(std::span{signal}));
  const auto envelope = engine.allocate(bytes);
  const auto below = engine.allocate(bytes);
  described_batch all[3] = {{sizeof(float), 1}, {sizeof(float), 1}, {sizeof(float), 1}};
  std::size_t i = 0;
  for (const auto* memory : {&source, &envelope, &below}) {
    if (!*memory) return refusal{memory->error()};
    all[i++].add((*memory)->address(), {signal.size()});
  }
  const tensor_batch x = all[0].get(), tops = all[1].get(), y = all[2].get();
  auto done = measure("copy", 2 * bytes, [&] { return engine.copy(x, y); });
  if (done) done = measure("max_pool_1d", 2 * bytes, [&] { return engine.max_pool_1d(x, tops, radius); });
  // Computes y = envelope - signal, with a new y for each run.
  if (done)
    done = measure("saxpy", 3 * bytes, [&] {
      const auto fresh = engine.copy(tops, y);
      return fresh ? engine.saxpy(-1, x, y) : fresh;
    });
  outputs made{std::vector<float>(signal.size()), std::vector<float>(signal.size())};
  if (done) done = engine.download(*envelope, std::as_writable_bytes(std::span{made.envelope}));
  if (done) done = engine.download(*below, std::as_writable_bytes(std::span{made.below}));
  if (!done) return refusal{done.error()};
  return made;
}

/// Draws the lowest and the highest value of each column of the picture.
void draw_curve(drawing::picture& sheet, std::span<const float> values, drawing::colour ink, bool is_line) {
  const double middle = sheet.height() / 2.0;
  for (std::uint32_t x = 0; x < sheet.width(); ++x) {
    const std::size_t first = std::min(values.size() * x / sheet.width(), values.size() - 1);
    const std::size_t last = std::max(values.size() * (x + 1) / sheet.width(), first + 1);
    const auto [low, high] = std::minmax_element(values.begin() + static_cast<std::ptrdiff_t>(first),
                                                 values.begin() + static_cast<std::ptrdiff_t>(last));
    const auto row = [&](float value) {
      return std::lround(middle * (1 - 0.9 * std::clamp(double{value}, -1.1, 1.1)));
    };
    const std::int64_t top = row(*high);
    sheet.fill({x, top - (is_line ? 1 : 0), 1, is_line ? std::max(row(*low) - top, 2L) : row(*low) - top + 1}, ink);
  }
}

outcome<void> run(const request_t& request) {
  const auto signal = read_signal(request);
  if (!signal) return refusal{signal.error()};
  const auto engine = ragged_engine::create(request.engine);
  if (!engine) return refusal{engine.error()};
  fmt::print("{}\n{} samples, radius {}\n", engine->description(), signal->size(), request.radius);
  const auto made = process(*engine, *signal, request.radius);
  if (!made) return refusal{made.error()};
  if (!request.out.empty()) {
    const std::string header = npy_header(dtype::f32, {2, signal->size()});
    const auto written =
        write_file(request.out, {std::as_bytes(std::span{header}), std::as_bytes(std::span{made->envelope}),
                                 std::as_bytes(std::span{made->below})});
    if (!written) return written;
  }
  if (request.picture.empty()) return {};
  drawing::picture sheet{1200, 420, {24, 27, 33}};
  draw_curve(sheet, *signal, {86, 130, 190}, false);
  draw_curve(sheet, made->envelope, {240, 170, 70}, true);
  return write_file(request.picture, {sheet.png()});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Pools a signal, subtracts it from its envelope, and draws both", "streaming_pool"};
  request_t request;
  app.add_option("--input", request.input, "A .npy file of f32 samples; without it, a signal is generated")
      ->type_name("FILE");
  app.add_option("--samples", request.samples, "Number of samples to generate")->check(CLI::Range(1ull, 1ull << 31));
  app.add_option("--seed", request.seed, "Seed of the noise in the generated signal");
  app.add_option("--radius", request.radius, "Radius of the sliding maximum");
  app.add_option("--picture", request.picture, "A .png file for the drawing")->type_name("FILE");
  app.add_option("--out", request.out, "A .npy file for the envelope and the distances from it")->type_name("FILE");
  add_engine_option(app, request.engine);
  if (const auto ended = apps::parse_command_line(app, argc, argv)) return *ended;
  const auto done = run(request);
  if (!done) fmt::print(stderr, "streaming_pool: {}\n", done.error());
  return done ? 0 : 1;
}
