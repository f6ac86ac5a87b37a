// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/encode_status.hpp>
#include <tmap/error.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda/stream_ref>

#include <cstdint>
#include <memory>

namespace tmap {

struct slot_record;

/// What a kernel needs of a batch, passed by value. Trivially copyable; owns nothing: good as long as the `map_batch`
/// it came from, on the streams that batch knows. `device::acquire(ref, i)` (device/acquire.cuh) is the way to map i.
struct map_batch_ref {
  const tensor_map* slots{};
  /// Beside `slots`; null for a trusted batch. Those of a reserved batch are its kernel's to write.
  const map_status* statuses{};
  const std::uint32_t* indices{};  ///< map i is in slot `indices[i]`; null: in slot i
  std::uint32_t count{};
  std::uint32_t generation{};    ///< of the lease, for `records`
  const slot_record* records{};  ///< beside `slots`; null unless the service checks hazards

  TMAP_HOST_DEVICE std::uint32_t slot_index(std::uint32_t i) const { return indices == nullptr ? i : indices[i]; }
  TMAP_HOST_DEVICE const tensor_map* slot(std::uint32_t i) const { return slots + slot_index(i); }
  TMAP_HOST_DEVICE map_status status(std::uint32_t i) const {
    return statuses == nullptr ? map_status{} : statuses[slot_index(i)];
  }
};

/// What a kernel that encodes for itself needs of a reserved batch (`map_service::reserve`), passed by value: each map
/// is to be written and published once (device/encode_warp.cuh). Trivially copyable; good as long as the `map_batch`.
struct map_batch_writer {
  tensor_map* slots{};
  map_status* statuses{};
  std::uint32_t count{};
  std::uint32_t generation{};
  slot_record* records{};
};

namespace service {
class lease;
struct access;
}  // namespace service

// map_batch: a lease of slots that hold the maps of one batch. Move-only. Its slots are immutable while it lives:
// nothing of tmap writes them again, and a new encoding takes new slots. The lease ends in stream order: after
// `release` or the destructor, the slots go to others once all that was enqueued so far on the batch's streams has run.
// No call of it ever waits for the device.
//
// The batch's streams are the one it was encoded on and each that `use_on` has named. A stream must live until the
// batches that use it are released. One `map_batch` is not for several threads at once; different ones are.
//
// A batch encoded while its stream is captured belongs to that graph: its slots stay until the graph and all its
// executables are destroyed, whatever becomes of the `map_batch`, and every replay encodes into them anew. (So replays
// of one graph, and of its other executables, must follow each other.)
//
// Where a batch is released while one of its streams is captured into another graph, that stream must live until the
// capture has ended and any batch of the service was released or made after it. A batch that was captured on the
// per-thread stream is released by the same thread.

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

  /// For the kernel that encodes a reserved batch; empty (null, 0) for any other.
  map_batch_writer writer() const { return writer_; }

  /// What became of the batch as a whole, in device memory; null unless it was asked for.
  const batch_header* header() const { return header_; }

  /// Makes `stream` wait, on the device, for what is enqueued so far on the stream the batch was encoded on, and adds
  /// it to the batch's streams. Call it right after the encode, or it waits for more than the encode. While `stream` is
  /// captured, the slots stay until that graph is destroyed; so it is also needed before a graph captured on the
  /// batch's own stream may use maps that were encoded outside it. A captured stream does not wait for an encode
  /// outside its graph: launch the graph after it. Does nothing twice. Fails with `invalid_argument` (empty batch, or
  /// one of another thread's per-thread stream), `out_of_memory` (of the host), `service_dead`, `forked`,
  /// `wrong_context`, `cuda_failure`.
  result<void> use_on(cuda::stream_ref stream);

  /// Ends the lease. After it the batch is empty. Does nothing to an empty batch. Fails with `service_dead` (which the
  /// service is from then on if an event could not be recorded: slots nobody can watch are never lent again), `forked`,
  /// and with `wrong_context`, where nothing has changed.
  result<void> release();

 private:
  friend struct service::access;
  map_batch(std::shared_ptr<service::lease> lease, const map_batch_ref& ref, const map_batch_writer& writer,
            const batch_header* header);

  std::shared_ptr<service::lease> lease_;
  map_batch_ref ref_;
  map_batch_writer writer_;
  const batch_header* header_{};
};

}  // namespace tmap
