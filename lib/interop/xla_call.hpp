// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/call.h>

#include <cstdint>
#include <string_view>

#include "lib/interop/call.hpp"
#include "lib/interop/xla_abi.hpp"

// The one way in and out of a handler of XLA's custom calls.

namespace tmap::interop::xla {

/// One array of a call. Its checks complain to `all`. Its values may be asked for while there is no
/// complaint.
class operand {
 public:
  operand(arguments& all, const buffers& of, std::int64_t index, const char* name);

  bool is_of(element type) const { return given_->type == type; }
  element type() const { return given_->type; }
  std::uint32_t rank() const { return static_cast<std::uint32_t>(given_->rank); }
  std::uint64_t dim(std::uint32_t index) const { return static_cast<std::uint64_t>(given_->dims[index]); }
  void* data() const { return given_->data; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(given_->data); }

  void refuse_type() const;
  void expect(element wanted) const {
    if (*all_ && !is_of(wanted)) refuse_type();
  }
  void expect_rank(std::uint64_t wanted) const;
  void expect_at_least_rank(std::uint64_t least) const {
    if (*all_) all_->at_least(rank(), least, name_.member("rank"));
  }
  void expect(std::uint32_t index, std::uint64_t extent) const;

 private:
  arguments* all_;
  support::argument name_;
  const buffer* given_{};
};

/// Returns the attribute of a name, an integer of a type: s32 or s64.
std::int64_t integer_of(arguments& all, const attributes& given, std::string_view word, const char* name, element type);

/// Makes the struct that calls of the C interface need.
tmap_call call_on(void* stream);

/// Checks the arguments of a handler and enqueues its work. `done` gets the status of a call of the
/// C interface.
using work = answer(const call_frame& frame, void* stream, tmap_status& done);

/// Runs a handler, and makes an error of XLA of its failure.
void* handle(const char* function, void* frame, work& body);

}  // namespace tmap::interop::xla
