// SPDX-License-Identifier: Apache-2.0
// Turns a folder of pictures of any sizes into one batch for a network: planar, normalised, f32,
// padded with zeros to [pictures, 3, height, width]. Draws a contact sheet from the batch.
#include "apps/samples/ragged_engine/ragged_engine.hpp"
#include "apps/support/command_line.hpp"
#include "apps/tmap/pad/contact_sheet.hpp"
#include "apps/tmap/pad/inputs.hpp"
#include "apps/tmap/pad/output_file.hpp"

#include <algorithm>
#include <cmath>

namespace {

using namespace tmap;
using namespace tmap::tool;
using ragged::value_type;

constexpr std::uint64_t channels = 3;
// Mean and deviation of the pictures that most image networks were trained on.
constexpr float mean[channels] = {0.485f, 0.456f, 0.406f};
constexpr float deviation[channels] = {0.229f, 0.224f, 0.225f};

/// Holds the pixels of all pictures, one picture after another, and the smallest frame that fits
/// each.
struct picture_set {
  std::vector<tensor> pictures;
  std::vector<std::byte> samples;
  std::vector<std::uint64_t> begins;
  std::uint64_t width{};
  std::uint64_t height{};

  std::uint64_t pixels(std::size_t i) const { return pictures[i].shape[0] * pictures[i].shape[1]; }
  std::uint64_t frame() const { return width * height; }
};

outcome<picture_set> read_pictures(const std::vector<std::string>& inputs) {
  loaded_inputs loaded = read_inputs(inputs, std::uint64_t{8} << 30, false);
  if (!loaded.failures.empty()) return refusal{loaded.failures.front()};
  picture_set set;
  for (tensor& t : loaded.tensors) {
    if (!t.picture) return refuse("{}: it is no picture", t.name);
    set.begins.push_back(set.samples.size());
    set.samples.insert(set.samples.end(), t.bytes.begin(), t.bytes.end());
    set.height = std::max(set.height, t.shape[0]);
    set.width = std::max(set.width, t.shape[1]);
    set.pictures.push_back(std::move(t));
  }
  return set;
}

/// Returns the scale and shift of each plane of each picture: from a byte to (byte / 255 - mean) /
/// deviation.
outcome<working_memory> plane_factors(const ragged_engine& engine, std::size_t pictures, bool shifts) {
  std::vector<float> factors;
  for (std::size_t plane = 0; plane < pictures * channels; ++plane) {
    const std::size_t c = plane % channels;
    factors.push_back(shifts ? -mean[c] / deviation[c] : 1 / (255 * deviation[c]));
  }
  return engine.upload(std::as_bytes(std::span{factors}));
}

outcome<std::vector<float>> make_batch(const ragged_engine& engine, const picture_set& set) {
  const std::size_t count = set.pictures.size();
  const auto interleaved = engine.upload(set.samples);
  const auto planar = engine.allocate(set.samples.size());
  const auto values = engine.allocate(set.samples.size() * sizeof(float));
  const auto batch = engine.allocate(count * channels * set.frame() * sizeof(float));
  const auto scales = plane_factors(engine, count, false);
  const auto shifts = plane_factors(engine, count, true);
  for (const auto* memory : {&interleaved, &planar, &values, &batch, &scales, &shifts}) {
    if (!*memory) return refusal{memory->error()};
  }

  described_batch pixels{1, 2}, turned{1, 2}, planes{1, 1};
  described_batch plane_values{sizeof(float), 1};
  described_batch picture_values{sizeof(float), 3};
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t size = set.pixels(i);
    pixels.add(interleaved->address() + set.begins[i], {channels, size});
    turned.add(planar->address() + set.begins[i], {size, channels});
    const std::uint64_t first = values->address() + set.begins[i] * sizeof(float);
    picture_values.add(first, {set.pictures[i].shape[1], set.pictures[i].shape[0], channels});
    for (std::uint64_t c = 0; c < channels; ++c) {
      planes.add(planar->address() + set.begins[i] + c * size, {size});
      plane_values.add(first + c * size * sizeof(float), {size});
    }
  }
  dense_batch dense;
  dense.address = batch->address();
  std::copy_n(std::begin({set.width, set.height, channels}), 3, dense.dim);

  const ragged::cast_values normalised{value_type::u8, value_type::f32, 1, 0, scales->as<float>(), shifts->as<float>()};
  run_time done = engine.transpose(pixels.get(), turned.get());
  if (done) done = engine.cast(planes.get(), plane_values.get(), normalised);
  if (done) done = engine.pad(picture_values.get(), dense, {});
  if (!done) return refusal{done.error()};
  std::vector<float> result(count * channels * set.frame());
  const auto got = engine.download(*batch, std::as_writable_bytes(std::span{result}));
  return got ? outcome<std::vector<float>>{std::move(result)} : refusal{got.error()};
}

/// Converts the batch back to bytes, pixel by pixel, and places the pictures in cells.
drawing::picture draw_sheet(const picture_set& set, const std::vector<float>& batch) {
  std::vector<std::byte> samples(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::size_t c = i / set.frame() % channels;
    const float value = std::round(255 * (batch[i] * deviation[c] + mean[c]));
    const std::size_t first = i / (channels * set.frame()) * channels * set.frame();
    samples[first + i % set.frame() * channels + c] = static_cast<std::byte>(std::clamp(value, 0.0f, 255.0f));
  }
  batch_plan plan;
  plan.shape = {set.height, set.width, channels};
  plan.dense_bytes = samples.size();
  for (std::size_t i = 0; i < set.pictures.size(); ++i) plan.members.push_back(i);
  return draw_contact_sheet(plan, set.pictures, samples);
}

outcome<void> run(const std::vector<std::string>& inputs, const std::filesystem::path& out, engine_request request) {
  const auto set = read_pictures(inputs);
  if (!set) return refusal{set.error()};
  const auto engine = ragged_engine::create(request);
  if (!engine) return refusal{engine.error()};
  fmt::print("{}\n", engine->description());
  const auto batch = make_batch(*engine, *set);
  if (!batch) return refusal{batch.error()};
  if (const auto made = prepare_folder(out); !made) return made;
  const shape_t shape{set->pictures.size(), channels, set->height, set->width};
  const std::string header = npy_header(dtype::f32, shape);
  const auto written =
      write_file(out / "batch.npy", {std::as_bytes(std::span{header}), std::as_bytes(std::span{*batch})});
  if (!written) return written;
  const std::vector<std::byte> sheet = draw_sheet(*set, *batch).png();
  fmt::print("{}: f32 {}\n{}\n", (out / "batch.npy").string(), to_string(shape), (out / "sheet.png").string());
  return write_file(out / "sheet.png", {sheet});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Makes one padded, normalised NCHW batch of pictures of any sizes", "ragged_images"};
  std::vector<std::string> inputs;
  std::string out;
  engine_request request{};
  app.add_option("input", inputs, "Pictures (.png, .jpg) or folders of them")->required();
  app.add_option("--out", out, "Folder for batch.npy and sheet.png")->required();
  add_engine_option(app, request);
  if (const auto ended = apps::parse_command_line(app, argc, argv)) return *ended;
  const auto done = run(inputs, out, request);
  if (!done) fmt::print(stderr, "ragged_images: {}\n", done.error());
  return done ? 0 : 1;
}
