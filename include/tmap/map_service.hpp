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

/// The options of a service.
struct service_options {
  std::uint64_t capacity{16384};  ///< slots at the beginning, 1 to `max_batch`
  std::uint64_t max_capacity{};   ///< slots it may grow to, at least `capacity`; 0: it never grows
  /// Device memory of the caller to use instead of an allocation: `service_memory_bytes(capacity)`,
  /// aligned to 256 bytes. It must not be freed before the service and its graphs are gone. With it
  /// the service never grows.
  void* memory{};
  std::uint64_t memory_bytes{};  ///< of `memory`
  bool self_test{true};  ///< whether the first service of each context compares the kernel's maps with the driver's
};

/// Returns the bytes of device memory for `capacity` slots and the service's counters. Pure.
TMAP_API std::uint64_t service_memory_bytes(std::uint64_t capacity);

/// The maps of a batch that `update` encodes again: `count` indices in device memory, unchanged
/// until the update has run. An index beyond the batch is skipped. An index given twice is encoded
/// twice.
struct changed_maps {
  const std::uint32_t* indices{};
  std::uint64_t count{};
};

/// The counts of a service since it was made. Reading them costs a copy of 16 bytes and waits for
/// no kernel. Each number is exact when nothing is in flight.
struct service_statistics {
  slot_counts slots;                    ///< free, leased, pending and captured ones
  std::uint64_t peak_leased{};          ///< most slots that were leased or captured at once
  std::uint64_t batches{};              ///< that `encode`, `update` and `reserve` made
  std::uint64_t encoded_maps{};         ///< enqueued by `encode` and `update`; the replays of a graph are not counted
  std::uint64_t bad_maps{};             ///< refused by the device's validation, replays included
  std::uint64_t empty_maps{};           ///< with a dim of 0, replays included
  std::uint64_t exhausted_calls{};      ///< calls that failed with `pool_exhausted`
  std::uint64_t cross_stream_reuses{};  ///< batches that got slots another stream had used last
  std::uint64_t device_bytes{};         ///< device memory of the service, that of the caller included
  std::uint64_t hazards{};              ///< reported by kernels built with TMAP_CHECK_HAZARDS
};

/// Returns one JSON object with the names of the members as keys. Empty only if memory runs out.
TMAP_API std::string to_json(const service_statistics& statistics);

/// A map_service lends slots of device memory, encodes batches into them, and takes them back in
/// stream order. So a map is never rewritten while a copy may read it. A service belongs to the
/// CUDA context that was current when it was made. Every function is thread-safe.
///
/// Only these wait for the device, and only the first two allocate device memory:
///
/// - `create`.
/// - Growth, if `max_capacity` allows it. It allocates memory and waits until it is cleared, but
///   never while the given stream is captured.
/// - A checked call (`encode_run::check`), which waits for its work.
/// - `statistics`, which waits for a copy on a stream of the service's own.
///
/// The slots of a released batch are lent again at once on the same stream. On another stream they
/// are lent when an event shows that they are free, or by making that stream wait, on the device,
/// for the stream that used them.
///
/// Under stream capture, `encode`, `update` and `reserve` take only free slots and give them to the
/// graph, even if a launch then fails. A call that is refused for its arguments takes none. Each
/// replay reads patches and offsets again from the same device arrays. Several graphs and
/// uncaptured work may be in flight.
///
/// If the pool has too few contiguous free slots, a call fails with `pool_exhausted` and the
/// counts, and changes nothing. An error that breaks the context, such as an illegal address in any
/// kernel, makes the service *dead*, and so does `cudaDeviceReset`. From then on every call fails
/// at once with `service_dead` and the code of that error, without calling CUDA, and nothing is
/// freed. After fork() every call in the child fails with `forked`, and destructors do nothing.
/// Once the process exits, destructors do nothing.
///
/// A thread without a context gets the primary context of its current device, as from any call of
/// the CUDA runtime. If another context than the service's is current, calls fail with
/// `wrong_context`. For a service in a context from cuCtxCreate, they do so even after that context
/// was destroyed, because CUDA cannot be asked about a destroyed context. Destroy such a service
/// first.
///
/// A service may be destroyed before its batches and graphs. The last of them frees its memory,
/// which waits for the device. Destroy it while its context is current; otherwise its memory is not
/// freed and a warning is logged. A warning is also logged if graphs still hold slots at that time,
/// since a graph ends on a thread that may not call CUDA.
class TMAP_API map_service {
 public:
  /// Makes a service for the current context of the calling thread. Allocates
  /// `service_memory_bytes(capacity)` of device memory unless memory is given. Once for each
  /// context it compares maps made by its kernel with the driver's, which waits for the device. May
  /// be called while streams are captured.
  /// @fails `invalid_argument`, `no_driver`, `no_device`, `no_context`,
  /// `compute_capability_too_low`, `driver_too_old`, `symbol_missing`, `driver_refused`,
  /// `no_kernel_image`, `out_of_memory`, `self_test_failed`, `earlier_asynchronous_error`,
  /// `cuda_failure`.
  [[nodiscard]] static result<map_service> create(const service_options& options = {});

  map_service(map_service&&) noexcept;
  map_service& operator=(map_service&&) noexcept;
  ~map_service();

  /// Encodes `count` maps of `base` and `source` into fresh slots, on `run.where.stream`, and lends
  /// them. All patches are validated on the device. The statuses are in the batch's `ref()`, so
  /// `run.statuses` must be null; a trusted batch has none. `run.header` costs another launch.
  /// `count` is 1 to `max_batch`. Arrays must stay unchanged until the encode has run. Fails as
  /// `encode_batch` does and with `pool_exhausted`, `out_of_memory` (of the host, or of the device
  /// during growth), `service_dead`, `forked`, `wrong_context`. A checked call that fails with
  /// `bad_items` has given its slots back.
  [[nodiscard]] result<map_batch> encode(const map_template& base, const tensor_source& source, std::uint64_t count,
                                         const encode_run& run);

  /// Makes a batch of the same size. The `changed` maps are encoded from `source` (map i from patch
  /// i) into fresh slots. All others are shared with `batch`, which stays as it is and may be
  /// released at once. `run.where.stream` becomes one of the streams of `batch`, as by `use_on`. If
  /// a chain of updates would hold more than twice as many slots as maps, including the tables of
  /// slot indices, all maps move together into fresh slots. The header, if any, counts only the
  /// changed maps. Fails as `encode` does, and with:
  ///
  /// - `unsupported`: `source` is `ragged_rows`, which cannot describe single maps.
  /// - `invalid_argument`: `batch` is empty or another service's, or only one of `batch` and `run`
  ///   is trusted.
  [[nodiscard]] result<map_batch> update(const map_batch& batch, const changed_maps& changed, const map_template& base,
                                         const tensor_source& source, const encode_run& run);

  /// Lends fresh slots to a kernel that encodes for itself (`encode_warp` with the batch's
  /// `writer()`). Launch that kernel on `stream` next. Fails as `encode` does.
  [[nodiscard]] result<map_batch> reserve(std::uint64_t count, cuda::stream_ref stream);

  /// Returns the counts so far. If the calls above would fail, as with `service_dead`, the device's
  /// counts are those of the previous call.
  service_statistics statistics() const;

 private:
  friend struct service::access;
  explicit map_service(std::shared_ptr<service::core> core);
  std::shared_ptr<service::core> core_;
};

}  // namespace tmap
