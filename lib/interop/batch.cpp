// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/batch.h>
#include <tmap/encode_batch.hpp>
#include <tmap/make_template.hpp>

#include <memory>

#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"
#include "lib/interop/inputs.hpp"
#include "lib/interop/objects.hpp"

namespace tmap::interop {
namespace {

using make_function = result<map_template> (*)(const tensor_spec&, patch_fields);

answer make_handle(make_function make, const tensor_spec& spec, patch_fields fields, tmap_template& made) {
  const result<map_template> base = make(spec, fields);
  if (!base) return base.error();
  return hand_out(templates(), std::make_shared<const map_template>(*base), &made);
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_template_create(const tmap_tensor_spec* spec, uint32_t fields, tmap_template* made) {
  return run(__func__, make_handle, as_is{make_function{tmap::make_template}}, input{"spec", spec},
             as_is{tmap::patch_fields{fields}}, output{"made", made});
}

tmap_status tmap_template_create_zeroed(const tmap_tensor_spec* spec, uint32_t fields, tmap_template* made) {
  return run(__func__, make_handle, as_is{make_function{tmap::make_zeroed_template}}, input{"spec", spec},
             as_is{tmap::patch_fields{fields}}, output{"made", made});
}

tmap_status tmap_template_destroy(tmap_template base) {
  return call(__func__, [&] { return templates().remove(base.value) == nullptr ? stale("base") : answer{}; });
}

tmap_status tmap_encode_batch(tmap_template base, const tmap_patch_source* source, tmap_tensor_map* slots,
                              uint64_t count, const tmap_call* call) {
  return run(__func__, tmap::encode_batch, object{"base", templates(), base.value}, input{"source", source},
             as_is{reinterpret_cast<tmap::tensor_map*>(slots)}, as_is{count}, encode_call{call});
}

tmap_status tmap_rows_workspace_bytes(uint64_t count, uint32_t offset_bytes, uint64_t* bytes) {
  return ask(__func__, output{"bytes", bytes}, tmap::ragged_workspace_bytes, as_is{count}, as_is{offset_bytes});
}
