// SPDX-License-Identifier: Apache-2.0
// Pads variable-length sequences, the lines of a text file, to one matrix. Runs an operation on its
// rows (subtracts the largest value of each, as before a softmax), and converts the result back to
// sequences of their own lengths.
#include "apps/samples/ragged_engine/ragged_engine.hpp"
#include "apps/support/command_line.hpp"
#include "apps/tmap/pad/output_file.hpp"

#include <algorithm>
#include <fstream>
#include <limits>

namespace {

using namespace tmap;
using namespace tmap::tool;
using ragged::value_type;

/// Holds the lines of a file one after another; line i is [ends[i - 1], ends[i]).
struct sequences {
  std::string bytes;
  std::vector<std::int64_t> ends;
  std::uint64_t longest{};

  std::uint64_t begin(std::size_t i) const { return i == 0 ? 0 : static_cast<std::uint64_t>(ends[i - 1]); }
  std::uint64_t length(std::size_t i) const { return static_cast<std::uint64_t>(ends[i]) - begin(i); }
};

outcome<sequences> read_lines(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) return refuse("{}: it cannot be opened", path);
  sequences read;
  for (std::string line; std::getline(file, line);) {
    read.bytes += line;
    read.ends.push_back(static_cast<std::int64_t>(read.bytes.size()));
    read.longest = std::max<std::uint64_t>(read.longest, line.size());
  }
  if (file.bad()) return refuse("{}: it cannot be read", path);
  if (read.bytes.empty()) return refuse("{}: it holds no line with a character", path);
  return read;
}

// [batch]
/// Describes the sequences as a ragged batch of rank 1 in one buffer. Their ends give the place of
/// each.
tensor_batch batch_of(const sequences& lines, const working_memory& memory, std::uint32_t element_bytes) {
  ragged_rows rows{};
  rows.base_address = memory.address();
  rows.row_pitch_bytes = element_bytes;
  rows.offsets = {lines.ends.data(), offset_format::ends, sizeof lines.ends.front()};
  tensor_batch batch;
  batch.tensors = rows;
  batch.count = lines.ends.size();
  batch.element_bytes = element_bytes;
  batch.rank = 1;
  batch.side = array_side::host;
  return batch;
}
// [batch]

// [dense]
/// Describes a row of `length` floats for each sequence.
dense_batch rows_of(const working_memory& matrix, std::uint64_t length) {
  dense_batch dense;
  dense.address = matrix.address();
  dense.dim[0] = length;
  return dense;
}

/// Returns the fill that is less than any value.
ragged::fill_value lowest_fill() {
  ragged::fill_value fill;
  const float lowest = -std::numeric_limits<float>::infinity();
  std::copy_n(reinterpret_cast<const unsigned char*>(&lowest), sizeof lowest, fill.bytes);
  return fill;
}
// [dense]

/// Returns all values of all sequences, each minus the largest of its sequence.
outcome<std::vector<float>> subtract_largest(const ragged_engine& engine, const sequences& lines) {
  const std::uint64_t count = lines.ends.size();
  const auto characters = engine.upload(std::as_bytes(std::span{lines.bytes}));
  const auto values = engine.allocate(lines.bytes.size() * sizeof(float));
  const auto matrix = engine.allocate(count * lines.longest * sizeof(float));
  const auto largest = engine.allocate(count * sizeof(float));
  const auto shifts = engine.allocate(count * sizeof(float));
  for (const auto* memory : {&characters, &values, &matrix, &largest, &shifts}) {
    if (!*memory) return refusal{memory->error()};
  }

  described_batch rows{sizeof(float), 1};
  described_batch tops{sizeof(float), 1};
  for (std::uint64_t i = 0; i < count; ++i) {
    rows.add(matrix->address() + i * lines.longest * sizeof(float), {lines.longest});
    tops.add(largest->address() + i * sizeof(float), {1});
  }
  described_batch all_tops{sizeof(float), 1};
  all_tops.add(largest->address(), {count});
  described_batch all_shifts{sizeof(float), 1};
  all_shifts.add(shifts->address(), {count});

  const dense_batch dense = rows_of(*matrix, lines.longest);
  const tensor_batch ragged_values = batch_of(lines, *values, sizeof(float));
  const ragged::cast_values less_largest{value_type::f32, value_type::f32, 1, 0, nullptr, shifts->as<float>()};
  run_time done = engine.cast(batch_of(lines, *characters, 1), ragged_values, {value_type::u8, value_type::f32});
  if (done) done = engine.pad(ragged_values, dense, lowest_fill());
  if (done) done = engine.largest_of_rows(rows.get(), tops.get());
  if (done) done = engine.cast(all_tops.get(), all_shifts.get(), {value_type::f32, value_type::f32, -1});
  if (done) done = engine.cast(rows.get(), rows.get(), less_largest);
  if (done) done = engine.unpad(dense, ragged_values);
  std::vector<float> result(lines.bytes.size());
  if (!done) return refusal{done.error()};
  if (const auto got = engine.download(*values, std::as_writable_bytes(std::span{result})); !got)
    return refusal{got.error()};
  return result;
}

void print_table(const sequences& lines, const std::vector<float>& values) {
  constexpr std::size_t most_rows = 12;
  fmt::print("{:>6} {:>8} {:>10} {:>10}\n", "line", "length", "lowest", "mean");
  for (std::size_t i = 0; i < std::min(most_rows, lines.ends.size()); ++i) {
    const std::span row = std::span{values}.subspan(lines.begin(i), lines.length(i));
    double sum = 0;
    for (const float value : row) sum += double{value};
    if (row.empty()) fmt::print("{:>6} {:>8} {:>10} {:>10}\n", i + 1, 0, "-", "-");
    if (row.empty()) continue;
    fmt::print("{:>6} {:>8} {:>10} {:>10.2f}\n", i + 1, row.size(), *std::min_element(row.begin(), row.end()),
               sum / static_cast<double>(row.size()));
  }
  if (lines.ends.size() > most_rows) fmt::print("... and {} more lines\n", lines.ends.size() - most_rows);
}

outcome<void> run(const std::string& input, const std::string& out, engine_request request) {
  const auto lines = read_lines(input);
  if (!lines) return refusal{lines.error()};
  const auto engine = ragged_engine::create(request);
  if (!engine) return refusal{engine.error()};
  fmt::print("{}\n{} sequences of at most {} values\n", engine->description(), lines->ends.size(), lines->longest);
  const auto values = subtract_largest(*engine, *lines);
  if (!values) return refusal{values.error()};
  print_table(*lines, *values);
  if (out.empty()) return {};
  const std::string header = npy_header(dtype::f32, {values->size()});
  return write_file(out, {std::as_bytes(std::span{header}), std::as_bytes(std::span{*values})});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Pads the lines of a text, takes each row's largest value from it, and unpads", "ragged_sequences"};
  std::string input;
  std::string out;
  engine_request request{};
  app.add_option("input", input, "A text file; each line is a sequence of bytes")->required();
  app.add_option("--out", out, "All values one after another, as a .npy file");
  add_engine_option(app, request);
  if (const auto ended = apps::parse_command_line(app, argc, argv)) return *ended;
  const auto done = run(input, out, request);
  if (!done) fmt::print(stderr, "ragged_sequences: {}\n", done.error());
  return done ? 0 : 1;
}
