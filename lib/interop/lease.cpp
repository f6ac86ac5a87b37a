// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/service.h>
#include <tmap/map_batch.hpp>

#include <bit>
#include <cstddef>

#include "lib/interop/inputs.hpp"
#include "lib/interop/objects.hpp"

namespace tmap::interop {
namespace {

// Refs and writers of C and of the library have the same bytes, since kernels take the library's.
static_assert(sizeof(tmap_batch_ref) == sizeof(map_batch_ref));
static_assert(offsetof(tmap_batch_ref, statuses) == offsetof(map_batch_ref, statuses));
static_assert(offsetof(tmap_batch_ref, indices) == offsetof(map_batch_ref, indices));
static_assert(offsetof(tmap_batch_ref, count) == offsetof(map_batch_ref, count));
static_assert(offsetof(tmap_batch_ref, generation) == offsetof(map_batch_ref, generation));
static_assert(offsetof(tmap_batch_ref, records) == offsetof(map_batch_ref, records));
static_assert(sizeof(tmap_batch_writer) == sizeof(map_batch_writer));
static_assert(offsetof(tmap_batch_writer, statuses) == offsetof(map_batch_writer, statuses));
static_assert(offsetof(tmap_batch_writer, count) == offsetof(map_batch_writer, count));
static_assert(offsetof(tmap_batch_writer, generation) == offsetof(map_batch_writer, generation));
static_assert(offsetof(tmap_batch_writer, records) == offsetof(map_batch_writer, records));

/// Calls `use(held)` while no other call uses the batch. The batch may have been released just
/// after it was found.
template <class Use>
answer with_batch(tmap_batch batch, const Use& use) {
  const auto held = batches().find(batch.value);
  if (held == nullptr) return stale("batch");
  const batch_turn turn{*held};
  if (!turn.is_granted()) return busy("batch");
  if (!held->batch) return stale("batch");
  return use(*held);
}

answer query(tmap_batch batch, tmap_batch_info& info) {
  return with_batch(batch, [&](const held_batch& held) -> answer {
    info = {sizeof(tmap_batch_info), 0, std::bit_cast<tmap_batch_ref>(held.batch.ref()),
            std::bit_cast<tmap_batch_writer>(held.batch.writer())};
    return {};
  });
}

answer release(tmap_batch batch) {
  return with_batch(batch, [&](held_batch& held) -> answer {
    const result<void> released = held.batch.release();
    if (released || released.error().code != status::wrong_context) batches().remove(batch.value);
    return answer_of(released);
  });
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_batch_query(tmap_batch batch, tmap_batch_info* info) {
  return run(__func__, query, as_is{batch}, sized_output{"info", info});
}

tmap_status tmap_batch_use_on(tmap_batch batch, tmap_stream stream) {
  return call(__func__, [&] {
    return with_batch(batch, [&](held_batch& held) { return answer_of(held.batch.use_on(cuda::stream_ref{stream})); });
  });
}

tmap_status tmap_batch_release(tmap_batch batch) {
  return call(__func__, [&] { return release(batch); });
}
