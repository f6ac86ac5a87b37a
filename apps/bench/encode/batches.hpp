// SPDX-License-Identifier: Apache-2.0
#pragma once

// The batches that the tables encode: plausible packed tensors at addresses that are never read,
// because nothing copies through the maps.

#include <tmap/encode_batch.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "apps/support/device_array.hpp"

namespace tmap::apps::bench {

inline constexpr std::uint64_t sizes[] = {1, 32, 256, 4096, 65536, 1048576};

/// Names the fields that each map of a batch changes.
struct patch_case {
  const char* name;
  std::uint32_t rank;
  patch_fields fields;
};
inline constexpr patch_case few{"few", 2, patch_extents(2)};
inline constexpr patch_case extents{"extents, rank 5", 5, patch_extents(5)};
inline constexpr patch_case everything{"all", 5, patch_everything(5)};
inline constexpr patch_case rows{"rows", 2, patch_address | patch_dim(1)};

/// The address of the first tensor.
inline constexpr std::uint64_t first_address = std::uint64_t{1} << 30;

map_template make_base(const patch_case& shape);

/// Serves every case: a case does not read the fields that it does not change.
std::vector<map_patch> make_patches(std::uint64_t count);

/// A batch on the device.
class batch {
 public:
  batch(const patch_case& shape, const std::vector<map_patch>& patches);

  const map_template& base() const { return base_; }
  std::uint64_t count() const { return patches_.size(); }
  patch_array source() const { return {patches_.get()}; }
  tensor_map* slots() const { return slots_.get(); }
  void encode(const encode_run& run) const;
  void encode(cudaStream_t stream) const { encode(encode_run{stream}); }

 private:
  map_template base_;
  device_array<map_patch> patches_;
  device_array<tensor_map> slots_;
};

/// Encodes the batch with `encode(run)`, waits, and returns the encoder's counts.
template <class Encode>
batch_header header_of(const Encode& encode) {
  const device_array<batch_header> header(1);
  encode(encode_run{.where = {cudaStream_t{}}, .header = header.get()});
  return header.read().front();
}

/// Checks that the benchmark measures what it claims to: no map of the batch may be refused or
/// empty.
template <class Encode>
void require_good(const Encode& encode) {
  const batch_header found = header_of(encode);
  require(found.bad_count == 0 && found.empty_count == 0);
}

}  // namespace tmap::apps::bench
