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

/// What a batch holds: fresh slots and, after updates, those it shares with the batches it was made
/// from, all of one slab. Ends with its last owner, or by `release`. Not for several threads at
/// once, as its batch.
class lease {
 public:
  /// `home` is the stream the batch is made on; all that `parts` parts will need of host memory is
  /// there then.
  lease(std::shared_ptr<core> service, cudaStream_t home, bool is_trusted, std::size_t parts = 1);
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;
  /// As `release`; what fails is logged.
  ~lease();

  /// Fresh slots, used on `home`.
  [[nodiscard]] result<lent_slots> take(std::uint64_t count);
  /// The same; and `home` becomes a stream of `old`, as by `use_on`, before the slots are lent.
  [[nodiscard]] result<lent_slots> take_reading(const lease& old, std::uint64_t count);
  /// As `take_reading`, of the slab that `old` is in.
  [[nodiscard]] result<lent_slots> take_beside(const lease& old, std::uint64_t count);
  /// Holds the slots of `other` too, which `home` has to be a stream of.
  void share(const lease& other);

  /// All work of the call that took the slots is enqueued: a batch has them from now on.
  void become_batch() { is_batch_ = true; }

  core& service() const { return *service_; }
  bool is_trusted() const { return is_trusted_; }
  std::size_t part_count() const { return parts_.size(); }
  /// Of all that is held, shared ones included.
  std::uint64_t slot_count() const;

  /// As `map_batch::use_on`, for each part.
  [[nodiscard]] result<void> use_on(cudaStream_t stream) const;
  /// As `map_batch::release`.
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

/// What this room sees of the public classes.
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
