// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nvtx3/nvtx3.hpp>

namespace tmap::support {

struct trace_domain {
  static constexpr const char* name = "tmap";
};

/// A range on the calling thread's timeline in a profiler, as long as the object lives: `const
/// trace_range range{"tmap encode"};`. Without a profiler it costs a test of a pointer.
using trace_range = nvtx3::scoped_range_in<trace_domain>;

}  // namespace tmap::support
