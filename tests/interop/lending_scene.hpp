// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_service.hpp>

#include <optional>
#include <string>
#include <vector>

#include "interop/out_of_memory.hpp"
#include "lib/service/create_service.hpp"
#include "service/service_fixture.hpp"

namespace tmap::testing {

/// Listens to the log without allocating.
class log_listener {
 public:
  log_listener();
  ~log_listener();
  /// Counts empty lines. A line that could not be made is not heard at all.
  int empty_lines() const { return empty_lines_; }

 private:
  int empty_lines_{};
};

/// Holds the arrays of every kind of patch source for the same tensors.
struct all_sources {
  explicit all_sources(const tensor_list& tensors);

  std::vector<std::uint64_t> address, dims[2], stride;
  std::vector<std::uint32_t> units, dims_32[2], stride_units;
  std::vector<std::int32_t> ends_32;
  std::vector<std::int64_t> ends_64;

  patch_columns columns() const { return {address.data(), {dims[0].data(), dims[1].data()}, {stride.data()}}; }
  compact_columns compact() const {
    return {0, units.data(), {dims_32[0].data(), dims_32[1].data()}, {stride_units.data()}};
  }
  ragged_rows rows_32() const { return {1 << 24, 256, {ends_32.data(), offset_format::ends, 4}}; }
  ragged_rows rows_64() const { return {1 << 24, 256, {ends_64.data(), offset_format::ends, 8}}; }
};

/// Holds a fake machine with a service that has lent one batch.
struct lending_scene {
  static constexpr bool may_do_a_part = false;
  static constexpr std::uint64_t maps = 20;

  lending_scene();
  /// Returns counts, log and maps after everything that is enqueued has run.
  std::string state();
  /// Encodes, updates, reserves, uses and releases. Then ends everything and expects that nothing
  /// is left.
  std::string work();

  result<map_service> make_service() {
    return service::create_service({.capacity = 64, .max_capacity = 256}, fake_machine::calls());
  }
  result<map_batch> encode(const map_template& of, const tensor_source& source) {
    return service->encode(of, source, maps, {home});
  }
  result<map_batch> encode_counted() {
    return service->encode(base, tensors.source(), maps, {.where = {home}, .header = &header});
  }
  result<map_batch> encode_trusted() {
    return service->encode(base, tensors.source(), maps, {.where = {home}, .choices = {.trusted = true}});
  }
  result<map_batch> update(const std::vector<std::uint32_t>& which, const tensor_source& source) {
    return service->update(batch, {which.data(), which.size()}, base, source, {updating});
  }
  std::uint64_t wrong_maps(const map_batch& of) const;

  fake_machine machine;
  log_listener log;
  batch_header header;
  map_template base = rows_template();
  map_template rows_base = codec_template(rows_spec(), patch_address | patch_dim(1)).value();
  tensor_list tensors{maps};
  all_sources sources{tensors};
  const std::vector<std::uint32_t> few{1, 5, 19};
  const std::vector<std::uint32_t> many = std::vector<std::uint32_t>(maps, 3);  ///< enough maps that all move together
  cudaStream_t home = machine.streams.open_stream();
  cudaStream_t other = machine.streams.open_stream();
  cudaStream_t updating = other;  ///< the stream that updates maps
  std::optional<map_service> service = make_service().value();
  std::optional<map_batch> lent = encode(base, tensors.source()).value();
  map_batch& batch = *lent;
};

/// Makes the same scene, but captures `home`.
struct captured_scene : lending_scene {
  captured_scene() {
    machine.streams.begin_capture(home);
    updating = home;
  }
  std::string work();
};

}  // namespace tmap::testing
