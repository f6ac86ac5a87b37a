// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/encode_batch.hpp>
#include <tmap/error.hpp>
#include <tmap/map_batch.hpp>
#include <tmap/slot_counts.hpp>
#include <tmap/tensor_source.hpp>

#include <cuda/stream_ref>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tmap {

namespace service {
class core;
}

/// How a service is made.
struct service_options {
  std::uint64_t capacity{16384};  ///< slots at the beginning, 1 to `max_batch`
  std::uint64_t max_capacity{};   ///< slots it may grow to, at least `capacity`; 0: it never grows
  /// Device memory of the caller in place of an allocation: `service_memory_bytes(capacity)`,
  /// aligned to 256 bytes, and not freed before the service and its graphs are gone. Then the
  /// service never grows.
  void* memory{};
  std::uint64_t memory_bytes{};
  bool self_test{true};  ///< whether the first service of each context compares the kernel's maps with the driver's
};

/// Device memory for `capacity` slots and what is counted beside them. Pure.
TMAP_API std::uint64_t service_memory_bytes(std::uint64_t capacity);

/// Which maps of a batch `update` encodes again: `count` indices in device memory, unchanged until
/// it has run. An index beyond the batch is passed over; one named twice is encoded twice.
struct changed_maps {
  const std::uint32_t* indices{};
  std::uint64_t count{};
};

/// What a service did so far. Read without waiting for a kernel: costs a copy of 16 bytes. Each
/// number is exact when nothing is in flight.
struct service_statistics {
  slot_counts slots;
  std::uint64_t peak_leased{};          ///< most slots that were leased or captured at once
  std::uint64_t batches{};              ///< that `encode`, `update` and `reserve` made
  std::uint64_t encoded_maps{};         ///< enqueued by `encode` and `update`; the replays of a graph are not counted
  std::uint64_t bad_maps{};             ///< refused by the device's validation, replays included
  std::uint64_t empty_maps{};           ///< with a dim of 0, replays included
  std::uint64_t exhausted_calls{};      ///< answered `pool_exhausted`
  std::uint64_t cross_stream_reuses{};  ///< batches that got slots another stream had used last
  std::uint64_t device_bytes{};
  std::uint64_t hazards{};  ///< reported by kernels built with TMAP_CHECK_HAZARDS
};

/// One JSON object, its keys named as the members. Empty for want of memory only.
TMAP_API std::string to_json(const service_statistics& statistics);

// map_service: the front door. Lends slots of device memory, encodes batches into them, and takes
// them back in stream order, so that a map is never rewritten while a copy may read it. One service
// serves one CUDA context: the one current where it was made. Every function is thread-safe, and
// none but `create` waits for the device or allocates device memory. Three exceptions: a call that
// is checked (`encode_run::check`) waits for its work; growth, where `max_capacity` allows it,
// allocates and waits for what clears the new memory (never while the stream given is captured);
// `statistics` waits for a copy on a stream of the service's own.
//
// Slots that a finished batch left are lent again at once on the same stream; on another stream,
// when an event says that they are free, or else by making that stream wait on the device for the
// stream that used them.
//
// Under stream capture `encode`, `update` and `reserve` take free slots only and leave them to the
// graph, also where a launch fails after that; a call that is refused for its arguments takes none.
// A replay reads patches and offsets anew from the same device arrays. Several graphs and
// uncaptured work may be in flight.
//
// When the pool has too few free slots in one piece, a call fails with `pool_exhausted` and its
// counts, and nothing has changed. An error that breaks the context (an illegal address in any
// kernel, say) makes the service *dead*, and so does `cudaDeviceReset`: from the call that meets it
// on, every call fails with `service_dead`, with the code of that error, at once and without
// calling CUDA, and nothing is freed. After fork() every call in the child fails with `forked` and
// destructors do nothing. Once the process exits, destructors do nothing.
//
// A thread without a context gets the primary one of its current device, as from any call of the
// CUDA runtime. Where another context is current than the service's, calls fail with
// `wrong_context`. A service in a context from cuCtxCreate answers so also after that context was
// destroyed, for nothing may be asked of a context that is gone: destroy such a service first.
//
// A service may be destroyed before its batches and graphs; the last of them lets go of its memory,
// which waits for the device. It must end where its context is current, or its memory is not freed;
// a warning says so, as it does where graphs still hold slots at that time, for a graph ends where
// CUDA may not be called.

class TMAP_API map_service {
 public:
  /// For the current context of the calling thread. Allocates `service_memory_bytes(capacity)` of
  /// device memory unless given, and once for each context compares maps made by its kernel with
  /// the driver's, which waits for the device. May be called while streams are captured. Fails with
  /// `invalid_argument`, `no_driver`, `no_device`, `no_context`, `compute_capability_too_low`,
  /// `driver_too_old`, `symbol_missing`, `driver_refused`, `no_kernel_image`, `out_of_memory`,
  /// `self_test_failed`, `earlier_asynchronous_error`, `cuda_failure`.
  [[nodiscard]] static result<map_service> create(const service_options& options = {});

  map_service(map_service&&) noexcept;
  map_service& operator=(map_service&&) noexcept;
  ~map_service();

  /// Encodes `count` maps of `base` and `source` into fresh slots, on `run.where.stream`, and lends
  /// them. All patches are validated on the device. The statuses are in the batch's `ref()`, so
  /// `run.statuses` must be null; a trusted batch has none. `run.header` costs one launch more.
  /// `count` is at least 1 and at most `max_batch`; arrays stay unchanged until the encode has run.
  /// Fails as `encode_batch` does and with `pool_exhausted`, `out_of_memory` (of the host, or of
  /// the device to grow), `service_dead`, `forked`, `wrong_context`. A call that fails because it
  /// is checked has given its slots back.
  [[nodiscard]] result<map_batch> encode(const map_template& base, const tensor_source& source, std::uint64_t count,
                                         const encode_run& run);

  /// A batch of the same size in which the `changed` maps are encoded from `source` (map i from
  /// patch i) into fresh slots and all others are shared with `batch`, which stays as it is and may
  /// be released at once. `run.where.stream` becomes one of the streams of `batch`, as by `use_on`.
  /// When a chain of updates would hold more slots than twice its maps, the tables that say where
  /// each map is included, all maps move together into fresh slots. The header, if any, counts the
  /// changed maps only. Fails as `encode` does, with `unsupported` where `source` is `ragged_rows`,
  /// which describe no map by itself, and with `invalid_argument` where `batch` is empty or another
  /// service's, or trusted and `run` is not, or the other way round.
  [[nodiscard]] result<map_batch> update(const map_batch& batch, const changed_maps& changed, const map_template& base,
                                         const tensor_source& source, const encode_run& run);

  /// Fresh slots for a kernel that encodes for itself (`encode_warp` with the batch's `writer()`),
  /// to be launched on `stream` next. Fails as `encode` does.
  [[nodiscard]] result<map_batch> reserve(std::uint64_t count, cuda::stream_ref stream);

  /// Where the calls above would fail (`service_dead`, say), what was counted on the device is as
  /// of the call before.
  service_statistics statistics() const;

 private:
  friend struct service::access;
  explicit map_service(std::shared_ptr<service::core> core);
  std::shared_ptr<service::core> core_;
};

}  // namespace tmap
