// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/gemm.h>
#include <tmap/c/xla.h>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "lib/interop/call.hpp"
#include "lib/interop/xla_abi.hpp"
#include "lib/support/check.hpp"

namespace tmap::interop {
namespace {

using xla::element;

constexpr char wrong_count[] = "is {found}; it must be {allowed}";
constexpr char wrong_type[] = "has XLA's element type {found}, which the call does not take";
constexpr char wrong_extent[] = "is {found}; it must be {allowed}, as that of the other arrays";

bool has_functions(const xla::api* api) {
  return api != nullptr && api->struct_size >= sizeof(xla::api) && api->version.major == xla::api_major;
}

void* report(const xla::api& api, xla::error_code code, const char* message) {
  xla::error_request request{xla::error_request_size, nullptr, message, code};
  return api.create_error(&request);
}

xla::error_code code_of(tmap_status failed) {
  switch (failed) {
    case TMAP_INVALID_ARGUMENT: return xla::error_code::invalid_argument;
    case TMAP_OUT_OF_MEMORY: return xla::error_code::resource_exhausted;
    case TMAP_NO_KERNEL_IMAGE:
    case TMAP_COMPUTE_CAPABILITY_TOO_LOW: return xla::error_code::unimplemented;
    default: return xla::error_code::internal;
  }
}

/// Reports this thread's last failure.
void* report_last(const xla::api& api, tmap_status failed) {
  char message[512];
  message[0] = 0;
  tmap_last_message(message, sizeof message, nullptr);  // a longer text is cut
  return report(api, code_of(failed), message);
}

/// One array of a call.
class operand {
 public:
  operand(arguments& all, const xla::buffers& of, std::int64_t index, const char* name, std::int64_t rank)
      : all_{&all}, name_{name} {
    if (!all) return;
    const bool is_there = index < of.count && of.kinds[index] == xla::buffer_kind;
    all.equal(is_there, 1, name, "is missing");
    if (!all) return;
    given_ = static_cast<const xla::buffer*>(of.values[index]);
    all.at_least(given_->struct_size, sizeof(xla::buffer), name_.member("struct_size"));
    if (all)
      all.equal(static_cast<std::uint64_t>(given_->rank), static_cast<std::uint64_t>(rank), name_.member("rank"),
                wrong_count);
  }

  bool is_of(element type) const { return given_->type == type; }
  element type() const { return given_->type; }
  std::uint64_t dim(std::uint32_t index) const { return static_cast<std::uint64_t>(given_->dims[index]); }
  void* data() const { return given_->data; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(given_->data); }

  void refuse_type() const { all_->refuse(name_.member("dtype"), wrong_type, static_cast<std::uint64_t>(type())); }
  void expect(element wanted) const {
    if (*all_ && !is_of(wanted)) refuse_type();
  }
  void expect(std::uint32_t index, std::uint64_t extent) const {
    if (*all_) all_->equal(dim(index), extent, name_.member("dims")[index], wrong_extent);
  }

 private:
  arguments* all_;
  support::argument name_;
  const xla::buffer* given_{};
};

/// The arrays that both products have.
struct product {
  product(arguments& all, const xla::call_frame& frame, std::int64_t rhs_rank)
      : lhs{all, frame.arguments, 0, "lhs", 2},
        rhs{all, frame.arguments, 1, "rhs", rhs_rank},
        sizes{all, frame.arguments, 2, "sizes", 1},
        counts{all, frame.arguments, frame.arguments.count > 3 ? 3 : 2, "counts", 1},
        out{all, frame.results, 0, "out", 5 - rhs_rank},
        workspace{all, frame.results, 1, "workspace", 1},
        has_counts{frame.arguments.count > 3} {
    sizes.expect(element::s32);
    counts.expect(element::s32);
    workspace.expect(element::u8);
    if (!all) return;
    counts.expect(0, sizes.dim(0));
    if (!lhs.is_of(element::bf16) && !lhs.is_of(element::f16)) lhs.refuse_type();
    rhs.expect(lhs.type());
    if (!out.is_of(element::f32)) out.expect(lhs.type());
  }

  template <class Problem>
  Problem problem() const {
    Problem made{};
    made.struct_size = sizeof made;
    made.operand = lhs.is_of(element::f16) ? TMAP_OPERAND_F16 : TMAP_OPERAND_BF16;
    made.groups = static_cast<std::uint32_t>(sizes.dim(0));
    made.b_layout = TMAP_B_K_BY_N;
    made.c_type = out.is_of(element::f32) ? TMAP_RESULT_F32 : TMAP_RESULT_LIKE_OPERANDS;
    made.rows = lhs.dim(0);
    made.offsets = {sizes.data(), has_counts ? TMAP_OFFSETS_BEGINS_AND_COUNTS : TMAP_OFFSETS_SIZES, 4,
                    has_counts ? counts.data() : nullptr, 0};
    made.a = {lhs.address(), 2 * lhs.dim(1)};
    made.c.address = out.address();
    return made;
  }
  std::uint64_t result_bytes() const { return out.is_of(element::f32) ? 4 : 2; }

  operand lhs, rhs, sizes, counts, out, workspace;
  bool has_counts;
};

tmap_call call_on(const product& of, void* stream) {
  tmap_call made{};
  made.struct_size = sizeof made;
  made.stream = static_cast<tmap_stream>(stream);
  made.workspace = of.workspace.data();
  made.workspace_bytes = of.workspace.dim(0);
  return made;
}

/// Returns the attribute of a name, a flag.
std::uint32_t flag_of(arguments& all, const xla::attributes& given, std::string_view word, const char* name) {
  for (std::int64_t i = 0; i < given.count; ++i) {
    if (std::string_view{given.names[i]->begin, given.names[i]->length} != word) continue;
    const auto& found = *static_cast<const xla::scalar*>(given.values[i]);
    const bool is_integer = given.kinds[i] == xla::scalar_kind && found.type == element::s32;
    all.equal(is_integer, 1, name, "is no scalar of 32 bits");
    if (!all) return 0;
    const auto value = *static_cast<const std::uint32_t*>(found.value);
    all.enumerator(value, 1u, name);
    return value;
  }
  all.refuse(name, "is missing");
  return 0;
}

result<void> clear(void* data, std::uint64_t bytes, void* stream) {
  TMAP_TRY_CUDA(cudaMemsetAsync(data, 0, bytes, static_cast<cudaStream_t>(stream)));
  return {};
}

answer multiply_rows(const xla::call_frame& frame, void* stream, tmap_status& done) {
  arguments given;
  const product of{given, frame, 3};
  const std::uint32_t is_turned = flag_of(given, frame.attributes, "turned", "turned");
  if (!given) return given.complaint();
  const std::uint64_t k = of.lhs.dim(1), n = of.rhs.dim(is_turned ? 1 : 2);
  of.rhs.expect(0, of.sizes.dim(0));
  of.rhs.expect(is_turned ? 2 : 1, k);
  of.out.expect(0, of.lhs.dim(0));
  of.out.expect(1, n);
  if (!given) return given.complaint();
  auto problem = of.problem<tmap_row_problem>();
  problem.n = n;
  problem.k = k;
  problem.b = {of.rhs.address(), 2 * of.rhs.dim(2)};
  problem.b_group_pitch_bytes = problem.b.pitch_bytes * of.rhs.dim(1);
  if (is_turned) problem.b_layout = TMAP_B_N_BY_K;
  problem.c.pitch_bytes = of.result_bytes() * n;
  // Rows of no group are zero by JAX's contract. How many there are is known on the device alone.
  const std::uint64_t bytes = problem.rows * problem.c.pitch_bytes;
  if (const result<void> cleared = clear(of.out.data(), bytes, stream); !cleared) return cleared.error();
  const tmap_call call = call_on(of, stream);
  done = tmap_gemm_rows(&problem, &call);
  return {};
}

answer multiply_weights(const xla::call_frame& frame, void* stream, tmap_status& done) {
  arguments given;
  const product of{given, frame, 2};
  if (!given) return given.complaint();
  const std::uint64_t m = of.lhs.dim(1), n = of.rhs.dim(1);
  of.rhs.expect(0, of.lhs.dim(0));
  of.out.expect(0, of.sizes.dim(0));
  of.out.expect(1, m);
  of.out.expect(2, n);
  if (!given) return given.complaint();
  auto problem = of.problem<tmap_weight_problem>();
  problem.a_layout = TMAP_A_K_BY_M;
  problem.m = m;
  problem.n = n;
  problem.b = {of.rhs.address(), 2 * n};
  problem.c.pitch_bytes = of.result_bytes() * n;
  problem.c_group_pitch_bytes = m * problem.c.pitch_bytes;
  const tmap_call call = call_on(of, stream);
  done = tmap_gemm_weights(&problem, &call);
  return {};
}

/// Fills in what XLA asks of a handler before it may be called. A frame or a table that is too
/// small gets the version that this library speaks, so XLA refuses the handler for another one.
void describe(const xla::call_frame& frame, xla::metadata& to) {
  if (to.struct_size < xla::metadata_size) return;
  const bool fits = frame.struct_size >= sizeof frame && has_functions(frame.api);
  to.version = {sizeof(xla::api_version), nullptr, xla::api_major, fits ? frame.api->version.minor : xla::api_minor};
  to.traits = xla::command_buffer_compatible;
}

template <class Body>
void* handle(const char* function, void* given, const Body& body) {
  const auto* frame = static_cast<const xla::call_frame*>(given);
  if (frame == nullptr) return nullptr;
  for (xla::extension* each = frame->extensions; each != nullptr; each = each->next) {
    if (each->type != xla::metadata_extension) continue;
    describe(*frame, *reinterpret_cast<xla::metadata_request*>(each)->answer);
    return nullptr;
  }
  if (!has_functions(frame->api)) return nullptr;  // XLA refused the handler before (`describe`)
  const xla::api& api = *frame->api;
  if (frame->struct_size < sizeof *frame) {
    return report(api, xla::error_code::unimplemented,
                  "tmap: XLA's call frame is smaller than that of XLA's interface 0.4: use jaxlib 0.11 or newer");
  }
  if (frame->stage != xla::execute_stage) return nullptr;
  xla::stream_request request{sizeof request, nullptr, frame->context, nullptr};
  if (void* failed = api.get_stream(&request); failed != nullptr) return failed;
  tmap_status done = TMAP_OK;
  const tmap_status checked = call(function, [&] { return body(*frame, request.stream, done); });
  if (checked != TMAP_OK) return report_last(api, checked);
  return done == TMAP_OK ? nullptr : report_last(api, done);
}

}  // namespace
}  // namespace tmap::interop

void* tmap_xla_rows(void* frame) {
  return tmap::interop::handle(__func__, frame, tmap::interop::multiply_rows);
}

void* tmap_xla_weights(void* frame) {
  return tmap::interop::handle(__func__, frame, tmap::interop::multiply_weights);
}
