// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/gemm.h>
#include <tmap/grouped_gemm.hpp>

#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"
#include "lib/interop/inputs.hpp"

namespace tmap::interop {
namespace {

template <class Problem>
tmap_status multiply(const char* name, const Problem* problem, const tmap_call* call) {
  return run(
      name, [](const auto& of, const auto& how) { return gemm::multiply(of, how); }, input{"problem", problem},
      gemm_call{call});
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_gemm_workspace_bytes(uint32_t groups, uint64_t* bytes) {
  return ask(__func__, output{"bytes", bytes}, tmap::gemm::workspace_bytes, as_is{groups});
}

uint32_t tmap_gemm_plan_count(void) {
  return tmap::gemm::plan_count();
}

const char* tmap_gemm_plan_name(uint32_t plan) {
  return tmap::gemm::plan_name(plan);
}

tmap_status tmap_gemm_rows(const tmap_row_problem* problem, const tmap_call* call) {
  return multiply(__func__, problem, call);
}

tmap_status tmap_gemm_columns(const tmap_column_problem* problem, const tmap_call* call) {
  return multiply(__func__, problem, call);
}

tmap_status tmap_gemm_weights(const tmap_weight_problem* problem, const tmap_call* call) {
  return multiply(__func__, problem, call);
}

tmap_status tmap_gemm_pointers(const tmap_pointer_problem* problem, const tmap_call* call) {
  return multiply(__func__, problem, call);
}
