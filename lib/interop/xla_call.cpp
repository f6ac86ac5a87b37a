// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/xla_call.hpp"

namespace tmap::interop::xla {
namespace {

constexpr char wrong_count[] = "is {found}; it must be {allowed}";
constexpr char wrong_type[] = "has XLA's element type {found}, which the call does not take";
constexpr char wrong_extent[] = "is {found}; it must be {allowed}, as that of the other arrays";

bool has_functions(const api* given) {
  return given != nullptr && given->struct_size >= sizeof(api) && given->version.major == api_major;
}

void* report(const api& functions, error_code code, const char* message) {
  error_request request{error_request_size, nullptr, message, code};
  return functions.create_error(&request);
}

error_code code_of(tmap_status failed) {
  switch (failed) {
    case TMAP_INVALID_ARGUMENT: return error_code::invalid_argument;
    case TMAP_OUT_OF_MEMORY: return error_code::resource_exhausted;
    case TMAP_NO_KERNEL_IMAGE:
    case TMAP_COMPUTE_CAPABILITY_TOO_LOW: return error_code::unimplemented;
    default: return error_code::internal;
  }
}

/// Reports this thread's last failure.
void* report_last(const api& functions, tmap_status failed) {
  char message[512];
  message[0] = 0;
  tmap_last_message(message, sizeof message, nullptr);  // a longer text is cut
  return report(functions, code_of(failed), message);
}

/// Fills in what XLA asks of a handler before it may be called. A frame or a table that is too
/// small gets the version that this library speaks, so XLA refuses the handler for another one.
void describe(const call_frame& frame, metadata& to) {
  if (to.struct_size < metadata_size) return;
  const bool fits = frame.struct_size >= sizeof frame && has_functions(frame.api);
  to.version = {sizeof(api_version), nullptr, api_major, fits ? frame.api->version.minor : api_minor};
  to.traits = command_buffer_compatible;
}

}  // namespace

operand::operand(arguments& all, const buffers& of, std::int64_t index, const char* name) : all_{&all}, name_{name} {
  if (!all) return;
  const bool is_there = index < of.count && of.kinds[index] == buffer_kind;
  all.equal(is_there, 1, name, "is missing");
  if (!all) return;
  given_ = static_cast<const buffer*>(of.values[index]);
  all.at_least(given_->struct_size, sizeof(buffer), name_.member("struct_size"));
}

void operand::refuse_type() const {
  all_->refuse(name_.member("dtype"), wrong_type, static_cast<std::uint64_t>(type()));
}

void operand::expect_rank(std::uint64_t wanted) const {
  if (*all_) all_->equal(rank(), wanted, name_.member("rank"), wrong_count);
}

void operand::expect(std::uint32_t index, std::uint64_t extent) const {
  if (*all_) all_->equal(dim(index), extent, name_.member("dims")[index], wrong_extent);
}

std::int64_t integer_of(arguments& all, const attributes& given, std::string_view word, const char* name,
                        element type) {
  for (std::int64_t i = 0; i < given.count; ++i) {
    if (std::string_view{given.names[i]->begin, given.names[i]->length} != word) continue;
    const auto& found = *static_cast<const scalar*>(given.values[i]);
    const bool is_integer = given.kinds[i] == scalar_kind && found.type == type;
    all.equal(is_integer, 1, name, type == element::s32 ? "is no scalar of 32 bits" : "is no scalar of 64 bits");
    if (!all) return 0;
    return type == element::s32 ? *static_cast<const std::int32_t*>(found.value)
                                : *static_cast<const std::int64_t*>(found.value);
  }
  all.refuse(name, "is missing");
  return 0;
}

tmap_call call_on(void* stream) {
  tmap_call made{};
  made.struct_size = sizeof made;
  made.stream = static_cast<tmap_stream>(stream);
  return made;
}

void* handle(const char* function, void* given, work& body) {
  const auto* frame = static_cast<const call_frame*>(given);
  if (frame == nullptr) return nullptr;
  for (extension* each = frame->extensions; each != nullptr; each = each->next) {
    if (each->type != metadata_extension) continue;
    describe(*frame, *reinterpret_cast<metadata_request*>(each)->answer);
    return nullptr;
  }
  if (!has_functions(frame->api)) return nullptr;  // XLA refused the handler before (`describe`)
  const api& functions = *frame->api;
  if (frame->struct_size < sizeof *frame) {
    return report(functions, error_code::unimplemented,
                  "tmap: XLA's call frame is smaller than that of XLA's interface 0.4: use jaxlib 0.11 or newer");
  }
  if (frame->stage != execute_stage) return nullptr;
  stream_request request{sizeof request, nullptr, frame->context, nullptr};
  if (void* failed = functions.get_stream(&request); failed != nullptr) return failed;
  tmap_status done = TMAP_OK;
  const tmap_status checked = interop::call(function, [&] { return body(*frame, request.stream, done); });
  if (checked != TMAP_OK) return report_last(functions, checked);
  return done == TMAP_OK ? nullptr : report_last(functions, done);
}

}  // namespace tmap::interop::xla
