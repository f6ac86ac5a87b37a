// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_service.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "lib/service/create_service.hpp"
#include "service/fake_encoder.hpp"
#include "service/fake_service.hpp"
#include "service/log_lines.hpp"
#include "service/rows_spec.hpp"
#include "support/refusal.hpp"

namespace tmap::testing {

/// Holds tensors of 64 x rows floats, each at a different address.
struct tensor_list {
  explicit tensor_list(std::uint64_t count, std::uint64_t first_address = std::uint64_t{1} << 24) {
    for (std::uint64_t i = 0; i < count; ++i) {
      map_patch patch{};
      patch.global_address = first_address + i * 4096;
      patch.global_dim[0] = 64;
      patch.global_dim[1] = 1 + i % 100;
      patch.global_stride_bytes[0] = 256;
      patches.push_back(patch);
    }
  }

  patch_array source() const { return {patches.data()}; }

  std::vector<map_patch> patches;
};

inline map_template rows_template() {
  return codec_template(rows_spec(), patch_extents(2)).value();
}

inline tensor_map map_of(const map_template& base, const map_patch& patch) {
  return encode_one(base, patch, {}).map;
}

class service_fixture : public ::testing::Test {
 protected:
  static result<map_service> try_make(const service_options& options) {
    return service::create_service(options, fake_machine::calls());
  }
  static map_service make(std::uint64_t capacity = 256) { return try_make({.capacity = capacity}).value(); }

  result<map_batch> encode(map_service& service, const tensor_list& tensors, const encode_run& run) const {
    return service.encode(base, tensors.source(), tensors.patches.size(), run);
  }
  result<map_batch> encode(map_service& service, const tensor_list& tensors, cudaStream_t stream) const {
    return encode(service, tensors, encode_run{stream});
  }

  static cuda::stream_ref stream_of(cudaStream_t stream) { return cuda::stream_ref{stream}; }

  /// Counts the maps of the batch that do not match their patches.
  std::uint64_t wrong_maps(const map_batch& batch, const tensor_list& tensors) const {
    const map_batch_ref ref = batch.ref();
    if (ref.count != tensors.patches.size()) return ~std::uint64_t{0};
    std::uint64_t wrong = 0;
    for (std::uint32_t i = 0; i < ref.count; ++i) {
      const encoded_map expected = encode_one(base, tensors.patches[i], {});
      wrong += *ref.slot(i) != expected.map || ref.status(i) != expected.status ? 1 : 0;
    }
    return wrong;
  }

  static void expect_sum(const slot_counts& slots) {
    EXPECT_EQ(slots.free + slots.leased + slots.pending + slots.captured, slots.capacity);
  }

  fake_machine machine;
  log_lines log;
  map_template base = rows_template();
};

}  // namespace tmap::testing
