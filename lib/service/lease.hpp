// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_batch.hpp>
#include <tmap/map_service.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/pool/map_pool.hpp"
#include "lib/service/lent_slots.hpp"
#include "lib/service/service_core.hpp"

namespace tmap::service {

/// Holds the slots of a batch: fresh ones and, after updates, those that it shares with the batches
/// it was made from. All lie in one slab. Ends with its last owner, or by `release`. Like its
/// batch, it is not for several threads at once.
class lease {
 public:
  /// `home` is the stream on which the batch is made. Allocates the host memory for `parts` parts.
  lease(std::shared_ptr<core> service, cudaStream_t home, bool is_trusted, std::size_t parts = 1);
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;
  /// Ends the lease as `release` does. A wrong context is logged.
  ~lease();

  /// Takes fresh slots, used on `home`.
  [[nodiscard]] result<lent_slots> take(std::uint64_t count);
  /// Takes the same; `home` becomes a stream of `old`, as by `use_on`, before the slots are lent.
  [[nodiscard]] result<lent_slots> take_reading(const lease& old, std::uint64_t count);
  /// Takes as `take_reading` does, from the slab of `old`.
  [[nodiscard]] result<lent_slots> take_beside(const lease& old, std::uint64_t count);
  /// Also holds the slots of `other`, which must be in use on `home`.
  void share(const lease& other);

  /// Call it when all work of the call that took the slots is enqueued. From then on a batch owns
  /// them.
  void become_batch() { is_batch_ = true; }

  core& service() const { return *service_; }
  bool is_trusted() const { return is_trusted_; }
  std::size_t part_count() const { return parts_.size(); }
  /// Counts all slots that are held, including shared ones.
  std::uint64_t slot_count() const;

  /// Does what `map_batch::use_on` does, for each part.
  [[nodiscard]] result<void> use_on(cudaStream_t stream) const;
  /// Does what `map_batch::release` does.
  [[nodiscard]] result<void> release();

 private:
  [[nodiscard]] result<lent_slots> hold(result<pool::lease_ptr> taken);
  pool::read_leases as_read() const { return {parts_, home_}; }

  std::shared_ptr<core> service_;
  cudaStream_t home_;
  bool is_trusted_;
  bool is_batch_{};
  std::vector<pool::lease_ptr> parts_;
};

/// The access of this folder to the public classes.
struct access {
  static map_batch make_batch(std::shared_ptr<lease> held, const map_batch_ref& ref, const map_batch_writer& writer,
                              const detail::tile_shape& shape = {}) {
    held->become_batch();
    return map_batch{std::move(held), ref, writer, shape};
  }
  static const detail::tile_shape& shape_of(const map_batch& batch) { return batch.shape_; }
  static const lease* lease_of(const map_batch& batch) { return batch.lease_.get(); }
  static map_service make_service(std::shared_ptr<core> made) { return map_service{std::move(made)}; }
};

}  // namespace tmap::service
