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

// map_batch: a lease of slots that hold the maps of one batch. Move-only. Its slots are immutable
// while it lives: nothing of tmap writes them again, and a new encoding takes new slots. The lease
// ends in stream order: after `release` or the destructor, the slots go to others once all that was
// enqueued so far on the batch's streams has run. No call of it ever waits for the device.
//
// The batch's streams are the one it was encoded on and each that `use_on` has named. A stream must
// live until the batches that use it are released. One `map_batch` is not for several threads at
// once; different ones are.
//
// A batch encoded while its stream is captured belongs to that graph: its slots stay until the
// graph and all its executables are destroyed, whatever becomes of the `map_batch`, and every
// replay encodes into them anew. (So replays of one graph, and of its other executables, must
// follow each other.)
//
// Where a batch is released while one of its streams is captured into another graph, that stream
// must live until the capture has ended and any batch of the service was released or made after it.
// A batch that was captured on the per-thread stream is released by the same thread.

class TMAP_API map_batch {
 public:
  map_batch() = default;
  map_batch(map_batch&& other) noexcept;
  map_batch& operator=(map_batch&& other) noexcept;
  /// As `release`. In a wrong context its slots are lost, which is logged.
  ~map_batch();

  explicit operator bool() const { return lease_ != nullptr; }
  std::uint32_t size() const { return ref_.count; }

  /// For kernels on the batch's streams.
  map_batch_ref ref() const { return ref_; }

  /// The same for kernels that move a `Tile` (tile.hpp). Fails as `typed_maps_of`
  /// (make_typed_maps.hpp) does where the template of the batch moves another one; where there is
  /// no one template, `argument` says so: the batch is empty, reserved, or an update of one that
  /// was made from another kind of template.
  template <class Tile>
  [[nodiscard]] result<typed_maps<Tile>> as() const {
    const result<void> checked = detail::check_tile(shape_, Tile::spec());
    if (!checked) return failure{checked.error()};
    return detail::typed_access::as<Tile>(ref_);
  }

  /// For the kernel that encodes a reserved batch; empty (null, 0) for any other.
  map_batch_writer writer() const { return writer_; }

  /// Makes `stream` wait, on the device, for what is enqueued so far on the stream the batch was
  /// encoded on, and adds it to the batch's streams. Call it right after the encode, or it waits
  /// for more than the encode. While `stream` is captured, the slots stay until that graph is
  /// destroyed; so it is also needed before a graph captured on the batch's own stream may use maps
  /// that were encoded outside it. A captured stream does not wait for an encode outside its graph:
  /// launch the graph after it. Does nothing twice. Fails with `invalid_argument` (empty batch, or
  /// one of another thread's per-thread stream), `out_of_memory` (of the host), `service_dead`,
  /// `forked`, `wrong_context`, `cuda_failure`.
  [[nodiscard]] result<void> use_on(cuda::stream_ref stream);

  /// Ends the lease. After it the batch is empty. Does nothing to an empty batch. Fails with
  /// `service_dead` (which the service is from then on if an event could not be recorded: slots
  /// nobody can watch are never lent again), `forked`, and with `wrong_context`, where nothing has
  /// changed.
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
