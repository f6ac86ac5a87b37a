// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/tile_shape.hpp>
#include <tmap/error.hpp>
#include <tmap/map_batch_ref.hpp>
#include <tmap/typed_maps.hpp>

#include <cuda/stream_ref>

#include <cstdint>
#include <memory>

namespace tmap {

namespace service {
class lease;
struct access;
}  // namespace service

/// A map_batch is a lease of slots that hold the maps of one batch. It is move-only. Its slots are
/// immutable while it lives: tmap does not write them again, and a new encoding takes new slots.
/// The lease ends in stream order: after `release` or the destructor, slots are lent again once the
/// work enqueued so far on the batch's streams has run. None of its calls waits for the device.
///
/// The batch's streams are the one it was encoded on and each stream given to `use_on`. A stream
/// must live until the batches that use it are released. Several threads may use different batches
/// at once, but not the same one.
///
/// A batch encoded while its stream is captured belongs to that graph. Its slots stay until the
/// graph and all its executables are destroyed, even if the `map_batch` ends earlier, and every
/// replay encodes into them again. Replays of one graph and of its other executables must therefore
/// not overlap.
///
/// A batch may be released while one of its streams is captured into another graph. That stream
/// must then live until the capture has ended and, after that, a batch of the service was released
/// or made. A batch that was captured on the per-thread stream must be released by the same thread.
class TMAP_API map_batch {
 public:
  map_batch() = default;
  map_batch(map_batch&& other) noexcept;
  map_batch& operator=(map_batch&& other) noexcept;
  /// Ends the lease as `release` does. In a wrong context the slots are lost, and a warning is
  /// logged.
  ~map_batch();

  explicit operator bool() const { return lease_ != nullptr; }
  std::uint32_t size() const { return ref_.count; }

  /// Returns the maps for kernels on the batch's streams.
  map_batch_ref ref() const { return ref_; }

  /// Returns `ref()` typed for kernels that move a `Tile` (tile.hpp). Fails as `typed_maps_of`
  /// (make_typed_maps.hpp) does if the template of the batch moves another tile. Fails in the same
  /// way if the batch has no single template: it is empty, reserved, or an update with a template
  /// of another shape.
  template <class Tile>
  [[nodiscard]] result<typed_maps<Tile>> as() const {
    const result<void> checked = detail::check_tile(shape_, Tile::spec());
    if (!checked) return failure{checked.error()};
    return detail::typed_access::as<Tile>(ref_);
  }

  /// Returns the slots for the kernel that encodes a reserved batch; empty (null, 0) for any other
  /// batch.
  map_batch_writer writer() const { return writer_; }

  /// Makes `stream` wait, on the device, for the work enqueued so far on the stream of the encode,
  /// and adds it to the batch's streams. Call it right after the encode, or it waits for more than
  /// the encode. If `stream` is being captured, the slots stay until that graph is destroyed. A
  /// graph captured on the batch's own stream also needs this call before it uses maps that were
  /// encoded outside it. A captured stream does not wait for an encode outside its graph: launch
  /// the graph after that encode. A second call for the same stream does nothing.
  /// @fails `invalid_argument` (empty batch, or one of another thread's per-thread stream),
  /// `out_of_memory` (of the host), `service_dead`, `forked`, `wrong_context`, `cuda_failure`.
  [[nodiscard]] result<void> use_on(cuda::stream_ref stream);

  /// Ends the lease and leaves the batch empty. Does nothing to an empty batch. If an event cannot
  /// be recorded, the service becomes dead, because nothing could show when the slots are free.
  /// @fails `service_dead`, `forked` or `wrong_context`; the last changes nothing.
  [[nodiscard]] result<void> release();

 private:
  friend struct service::access;
  map_batch(std::shared_ptr<service::lease> lease, const map_batch_ref& ref, const map_batch_writer& writer,
            const detail::tile_shape& shape);

  std::shared_ptr<service::lease> lease_;
  map_batch_ref ref_;
  map_batch_writer writer_;
  detail::tile_shape shape_;
};

}  // namespace tmap
