// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/bench/gemm/subject.hpp"
#include "apps/support/timing.hpp"

namespace tmap::apps::bench {

/// Measures what each kind of result costs, and prints a table. Operands are of bf16.
void print_epilogues(const timer& time, operand_memory& memory);

}  // namespace tmap::apps::bench
