// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/gemm.h>
#include <tmap/grouped_gemm.hpp>

#include "lib/interop/bad_item.hpp"
#include "lib/interop/convert_gemm.hpp"

namespace tmap::interop {
namespace {

template <class Problem>
answer multiply(const Problem* problem, const workspace& scratch, const tmap_gemm_options* options,
                tmap_stream stream) {
  arguments given;
  check_problem(given, problem);
  given.optional_structure(options, "options");
  check_check(given, options, "options.check");
  if (!given) return given.complaint();
  return answer_of(gemm::multiply(problem_of(*problem), run_of(options, {cuda::stream_ref{stream}, scratch})));
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_gemm_workspace_bytes(uint32_t groups, uint64_t* bytes) {
  return call(__func__, [&]() -> answer {
    arguments given;
    given.pointer(bytes, "bytes");
    if (!given) return given.complaint();
    const tmap::result<std::uint64_t> needed = tmap::gemm::workspace_bytes(groups);
    if (!needed) return needed.error();
    *bytes = *needed;
    return {};
  });
}

uint32_t tmap_gemm_plan_count(void) {
  return tmap::gemm::plan_count();
}

const char* tmap_gemm_plan_name(uint32_t plan) {
  return tmap::gemm::plan_name(plan);
}

tmap_status tmap_gemm_rows(const tmap_row_problem* problem, void* workspace, uint64_t workspace_bytes,
                           const tmap_gemm_options* options, tmap_stream stream) {
  return call(__func__, [&] { return multiply(problem, {workspace, workspace_bytes}, options, stream); });
}

tmap_status tmap_gemm_weights(const tmap_weight_problem* problem, void* workspace, uint64_t workspace_bytes,
                              const tmap_gemm_options* options, tmap_stream stream) {
  return call(__func__, [&] { return multiply(problem, {workspace, workspace_bytes}, options, stream); });
}

tmap_status tmap_gemm_pointers(const tmap_pointer_problem* problem, void* workspace, uint64_t workspace_bytes,
                               const tmap_gemm_options* options, tmap_stream stream) {
  return call(__func__, [&] { return multiply(problem, {workspace, workspace_bytes}, options, stream); });
}
