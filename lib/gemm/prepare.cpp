// SPDX-License-Identifier: Apache-2.0
#include "lib/gemm/prepare.hpp"

#include <tmap/make_template.hpp>

#include "lib/driver/map_driver.hpp"
#include "lib/encode/device.hpp"
#include "lib/gemm/checks.hpp"
#include "lib/gemm/plan.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace tmap::gemm {
namespace {

/// Holds the templates of maps that get their addresses and extents on the device. Products need
/// few different ones. The driver takes longer to make one than a thread takes to find it here.
class kept_templates {
 public:
  const map_template* find(const tensor_spec& of) const {
    for (const entry& each : entries_) {
      if (std::memcmp(&each.from, &of, sizeof of) == 0) return &each.made;
    }
    return nullptr;
  }
  void keep(const tensor_spec& from, const map_template& made) {
    entries_[next_] = {from, made};
    next_ = (next_ + 1) % entries_.size();
  }

 private:
  struct entry {
    tensor_spec from;
    map_template made;
  };
  static_assert(std::has_unique_object_representations_v<tensor_spec>);

  std::array<entry, 8> entries_{};
  std::size_t next_ = 0;
};

result<void> make(map_template& to, const map_spec& from) {
  thread_local kept_templates kept;
  const bool is_complete_later = from.fields == patch_extents(2);
  if (const map_template* const found = is_complete_later ? kept.find(from.spec) : nullptr) {
    to = *found;
    return {};
  }
  const result<map_template> made = make_template(from.spec, from.fields);
  if (!made) return failure(made.error());
  if (is_complete_later) kept.keep(from.spec, *made);
  to = *made;
  return {};
}

result<kernels::gemm_maps> make_maps(const map_specs& specs) {
  kernels::gemm_maps maps{};
  if (const auto made = make(maps.a, specs.a); !made) return failure(made.error());
  if (const auto made = make(maps.b, specs.b); !made) return failure(made.error());
  if (const auto made = make(maps.c, specs.c); !made) return failure(made.error());
  if (const auto made = make(maps.second, specs.second); !made) return failure(made.error());
  return maps;
}

}  // namespace

template <class Problem>
result<prepared_product> prepare(const Problem& problem, const std::optional<std::uint32_t>& asked) {
  if (const result<void> has_kernels = require_kernels(); !has_kernels) return failure(has_kernels.error());
  const kernels::gemm_plan& plan = kernels::gemm_plans[asked ? *asked : choose_plan(problem)];
  const result<device_limits> limits = driver::process_driver().query_limits();
  if (!limits) return failure(limits.error());
  if (const result<void> checked = check_gpu(*limits, kernels::has_gemm_kernels()); !checked) {
    return failure(checked.error());
  }
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure(multiprocessors.error());
  const result<kernels::gemm_maps> maps = make_maps(map_specs_of(problem, plan));
  if (!maps) return failure(maps.error());
  return prepared_product{&plan, *maps, *multiprocessors};
}

template result<prepared_product> prepare(const row_problem&, const std::optional<std::uint32_t>&);
template result<prepared_product> prepare(const column_problem&, const std::optional<std::uint32_t>&);
template result<prepared_product> prepare(const weight_problem&, const std::optional<std::uint32_t>&);
template result<prepared_product> prepare(const pointer_problem&, const std::optional<std::uint32_t>&);

}  // namespace tmap::gemm
