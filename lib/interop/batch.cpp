// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/batch.h>
#include <tmap/encode_batch.hpp>
#include <tmap/make_template.hpp>

#include <cstdint>
#include <memory>

#include "lib/interop/bad_item.hpp"
#include "lib/interop/convert_source.hpp"
#include "lib/interop/convert_spec.hpp"
#include "lib/interop/objects.hpp"

namespace tmap::interop {
namespace {

answer make_template_of(const tmap_tensor_spec* spec, uint32_t fields, tmap_template* made,
                        result<map_template> (*make)(const tensor_spec&, patch_fields)) {
  arguments given;
  given.structure(spec, "spec");
  given.pointer(made, "made");
  if (!given) return given.complaint();
  const result<map_template> base = make(spec_of(*spec), fields);
  if (!base) return base.error();
  return hand_out(templates(), std::make_shared<const map_template>(*base), made);
}

answer encode_into_slots(tmap_template base, const tmap_patch_source* source, tmap_tensor_map* slots, uint64_t count,
                         const tmap_encode_options* options, tmap_stream stream) {
  arguments given;
  check_source(given, source, "source");
  given.optional_structure(options, "options");
  if (given && options != nullptr) {
    given.enumerator(options->trusted, 1, "options.trusted");
    given.enumerator(options->publish, TMAP_PUBLISH_COPY_FENCE, "options.publish");
    given.equal(reinterpret_cast<std::uintptr_t>(options->totals), 0, "options.totals", "is given; it must be null");
  }
  check_check(given, options, "options.check");
  if (!given) return given.complaint();
  const auto shared = templates().find(base.value);
  if (shared == nullptr) return stale("base");
  const tmap_encode_options with = options == nullptr ? tmap_encode_options{} : *options;
  encode_run run = run_of(with, *source, stream);
  run.statuses = reinterpret_cast<map_status*>(with.statuses);
  const result<void> done = encode_batch(*shared, source_of(*source), reinterpret_cast<tensor_map*>(slots), count, run);
  return done ? answer{} : complaint_of(done.error(), "options");
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_template_create(const tmap_tensor_spec* spec, uint32_t fields, tmap_template* made) {
  return call(__func__, [&] { return make_template_of(spec, fields, made, &tmap::make_template); });
}

tmap_status tmap_template_create_zeroed(const tmap_tensor_spec* spec, uint32_t fields, tmap_template* made) {
  return call(__func__, [&] { return make_template_of(spec, fields, made, &tmap::make_zeroed_template); });
}

tmap_status tmap_template_destroy(tmap_template base) {
  return call(__func__, [&] { return templates().remove(base.value) == nullptr ? stale("base") : answer{}; });
}

tmap_status tmap_encode_batch(tmap_template base, const tmap_patch_source* source, tmap_tensor_map* slots,
                              uint64_t count, const tmap_encode_options* options, tmap_stream stream) {
  return call(__func__, [&] { return encode_into_slots(base, source, slots, count, options, stream); });
}

tmap_status tmap_rows_workspace_bytes(uint64_t count, uint32_t offset_bytes, uint64_t* bytes) {
  return call(__func__, [&]() -> answer {
    arguments given;
    given.pointer(bytes, "bytes");
    if (!given) return given.complaint();
    const tmap::result<std::uint64_t> needed = tmap::ragged_workspace_bytes(count, offset_bytes);
    if (!needed) return needed.error();
    *bytes = *needed;
    return {};
  });
}
