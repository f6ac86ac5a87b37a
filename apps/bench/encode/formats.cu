// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/patch_source.cuh>

#include <bitset>
#include <cstddef>
#include <string>
#include <vector>

#include "apps/bench/common/table.hpp"
#include "apps/bench/encode/batches.hpp"
#include "apps/bench/encode/floors.cuh"
#include "apps/bench/encode/tables.hpp"
#include "apps/support/progress.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint64_t format_sizes[] = {4096, 65536, 1048576};
constexpr std::uint64_t formats_measured = 8;

/// Counts the bytes read per map: the bytes of the fields, and the bytes that memory moves for
/// them.
struct read_bytes {
  double fields;
  double moved;
};

struct format_figures {
  std::string format;
  patch_case shape;
  std::uint64_t count;
  read_bytes read;
  ways encode;
  ways floor;
};

std::uint32_t field_count(patch_fields fields) {
  return static_cast<std::uint32_t>(std::bitset<32>(bits_of(fields)).count());
}

/// Counts the bytes of an array of `map_patch`. Memory moves sectors of 32 bytes; two patches take
/// seven sectors.
read_bytes array_bytes(const patch_case& shape) {
  constexpr std::size_t sector = 32;
  std::bitset<2 * sizeof(map_patch) / sector> touched;
  std::size_t bytes = 0;
  const auto touch = [&](patch_fields field, std::size_t offset, std::size_t size) {
    if (!has_any(shape.fields, field)) return;
    bytes += size;
    // A field is read together with its aligned 16 bytes, which never cross a sector.
    for (const std::size_t patch : {std::size_t{0}, sizeof(map_patch)}) touched.set((patch + offset) / sector);
  };
  touch(patch_address, offsetof(map_patch, global_address), 8);
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    touch(patch_dim(axis), offsetof(map_patch, global_dim) + 8 * axis, 8);
    if (axis + 1 < max_rank) touch(patch_stride(axis), offsetof(map_patch, global_stride_bytes) + 8 * axis, 8);
  }
  return {static_cast<double>(bytes), static_cast<double>(touched.count() * sector) / 2};
}

/// Counts the bytes of arrays with one value per map, which are read without gaps.
read_bytes dense_bytes(std::size_t bytes) {
  return {static_cast<double>(bytes), static_cast<double>(bytes)};
}

/// Owns columns on the device, made from patches.
template <class Word>
class column_store {
 public:
  explicit column_store(const std::vector<map_patch>& patches) : patches_(patches) {}

  template <class Value>
  const Word* add(const Value& value) {
    std::vector<Word> words;
    for (const map_patch& patch : patches_) words.push_back(static_cast<Word>(value(patch)));
    columns_.emplace_back(words);
    return columns_.back().get();
  }

 private:
  const std::vector<map_patch>& patches_;
  std::vector<device_array<Word>> columns_;
};

patch_columns make_columns(const patch_case& shape, column_store<std::uint64_t>& store) {
  patch_columns columns{};
  columns.global_address = store.add([](const map_patch& p) { return p.global_address; });
  for (std::uint32_t axis = 0; axis < shape.rank; ++axis) {
    columns.global_dim[axis] = store.add([=](const map_patch& p) { return p.global_dim[axis]; });
    if (axis + 1 == shape.rank) break;
    columns.global_stride_bytes[axis] = store.add([=](const map_patch& p) { return p.global_stride_bytes[axis]; });
  }
  return columns;
}

compact_columns make_compact(const patch_case& shape, column_store<std::uint32_t>& store) {
  constexpr std::uint64_t unit = 16;
  compact_columns columns{};
  columns.base_address = first_address;
  columns.address_units = store.add([](const map_patch& p) { return (p.global_address - first_address) / unit; });
  for (std::uint32_t axis = 0; axis < shape.rank; ++axis) {
    columns.global_dim[axis] = store.add([=](const map_patch& p) { return p.global_dim[axis]; });
    if (axis + 1 == shape.rank) break;
    columns.global_stride_units[axis] =
        store.add([=](const map_patch& p) { return p.global_stride_bytes[axis] / unit; });
  }
  return columns;
}

/// Measures all formats at one size.
class format_runs {
 public:
  format_runs(const timer& clock, std::uint64_t count, std::vector<format_figures>& all, progress& bar)
      : clock_(clock), patches_(make_patches(count)), slots_(count), all_(all), bar_(bar) {}

  template <patch_fields Fields>
  void run_fields(const patch_case& shape) {
    const device_array<map_patch> patches(patches_);
    const patch_array array{patches.get()};
    add<Fields>("array of structs, 112 B", shape, array, device::patch_array_reader(array, Fields), array_bytes(shape));
    column_store<std::uint64_t> wide(patches_);
    const patch_columns columns = make_columns(shape, wide);
    add<Fields>("columns, 64 bits", shape, columns, device::patch_columns_reader(columns, Fields),
                dense_bytes(field_count(Fields) * sizeof(std::uint64_t)));
    column_store<std::uint32_t> narrow(patches_);
    const compact_columns compact = make_compact(shape, narrow);
    add<Fields>("compact columns, 32 bits", shape, compact, device::compact_columns_reader(compact, Fields),
                dense_bytes(field_count(Fields) * sizeof(std::uint32_t)));
  }

  template <class Offset>
  void run_rows(const char* format) {
    std::vector<Offset> prefix{0};
    for (const map_patch& p : patches_) prefix.push_back(static_cast<Offset>(prefix.back() + p.global_dim[0]));
    const device_array<Offset> offsets(prefix);
    const ragged_rows source{.base_address = first_address,
                             .row_pitch_bytes = 256,
                             .offsets = {offsets.get(), offset_format::prefix, sizeof(Offset)}};
    const device::ragged_rows_reader<Offset> reader(device::typed_rows_of<Offset>(source));
    add<rows.fields>(format, rows, source, reader, dense_bytes(sizeof(Offset)));
  }

 private:
  template <patch_fields Fields, class Reader>
  void add(const char* format, const patch_case& shape, const tensor_source& source, const Reader& reader,
           const read_bytes& read) {
    const map_template base = make_base(shape);
    const std::uint64_t count = patches_.size();
    const auto encode_by = [&](const encode_run& run) {
      require(encode_batch(base, source, slots_.get(), count, run));
    };
    const auto encode = [&](cudaStream_t stream) { encode_by(encode_run{stream}); };
    require_good(encode_by);
    const twin beside(clock_, count, encode);
    const auto floor = [&](cudaStream_t stream) {
      beside.launch(stream, overlap_with_last::allowed, 0, floor_kernel<bits_of(Fields), Reader>, reader, slots_.get(),
                    count, beside.maps_per_warp());
    };
    all_.push_back({format, shape, count, read, clock_.both(encode), clock_.both(floor)});
    bar_.advance(1);
  }

  const timer& clock_;
  std::vector<map_patch> patches_;
  device_array<tensor_map> slots_;
  std::vector<format_figures>& all_;
  progress& bar_;
};

std::vector<format_figures> measure_formats(const timer& clock) {
  std::vector<format_figures> all;
  progress bar{"formats", formats_measured * std::size(format_sizes)};
  for (const std::uint64_t count : format_sizes) {
    format_runs runs(clock, count, all, bar);
    runs.run_fields<few.fields>(few);
    runs.run_fields<extents.fields>(extents);
    runs.run_rows<std::int32_t>("ragged rows, prefix of 32 bits");
    runs.run_rows<std::int64_t>("ragged rows, prefix of 64 bits");
  }
  return all;
}

}  // namespace

void print_formats(const timer& clock) {
  const std::vector<format_figures> all = measure_formats(clock);
  table t(
      "Patch formats. Bytes read a map: those of its fields, and in brackets what memory moves for them (32-byte "
      "sectors of the array, each counted once; the others are dense). Rates from the graph's time; GB/s are bytes "
      "moved and the 128 written.",
      {"format", "patches", "maps", "bytes read", "stream us", "graph us", "rate", "GB/s", "floor, graph us",
       "tmap / floor, stream", "tmap / floor, graph"});
  for (const format_figures& f : all) {
    const double bytes = static_cast<double>(f.count) * (f.read.moved + tensor_map_bytes);
    t.add({f.format, f.shape.name, count_text(f.count), text(f.read.fields, 0) + " (" + text(f.read.moved, 0) + ")",
           text(f.encode.stream), text(f.encode.graph), rate_text(f.count, f.encode.graph),
           text(bytes / f.encode.graph / 1e3, 0), text(f.floor.graph), text(f.encode.stream / f.floor.stream),
           text(f.encode.graph / f.floor.graph)});
  }
  t.print();
}

}  // namespace tmap::apps::bench
