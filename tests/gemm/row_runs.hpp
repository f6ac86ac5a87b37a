// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a product of groups of rows on the GPU, with the chosen plan or with all, and compares it
// with the reference.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/on_device.hpp"

namespace tmap::gemm::testing {

inline std::string text_of(const row_settings& with) {
  return fmt::format(
      "type {} to {}, fast {}, scales {} {}, inputs {}, layouts {} {}, format {}, bias {}, gate {}, interleaved {}, "
      "backward {}, "
      "accumulate {}, n {}, k {}, sizes {}",
      static_cast<int>(with.type), static_cast<int>(with.c_type), with.fast_accumulation, with.block_scales,
      with.turned_scales, static_cast<int>(with.kind), static_cast<int>(with.a_layout), static_cast<int>(with.b_layout),
      static_cast<int>(with.format), with.bias, static_cast<int>(with.gates.function), with.is_interleaved(),
      with.gates.backward, with.accumulate, with.n, with.k, fmt::join(with.sizes, " "));
}

inline void run(const row_settings& with) {
  const row_case made(with);
  const rows_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, text_of(with));
}

class grouped_rows : public gemm_test {};

/// Returns whether a plan's tiles hold the results that share a scale, so that it is not refused.
inline bool is_legal(const row_settings& with, std::uint32_t plan) {
  return with.c_type != result_type::f8_e4m3 || !with.has_gates() || plan_name(plan) != std::string{"128x128"};
}

/// Runs every plan, because each is legal for every problem that has no scales of results, fast or
/// not. `expect(made, device, plan)` may check more.
template <class Expect>
void run_every_plan(const row_settings& with, const Expect& expect) {
  const row_case made(with);
  const rows_on_device device(made);
  const expected_output want = made.expected();
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    device.reset_output();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    device.expect(made, want, fmt::format("{}: {}", plan_name(plan), text_of(with)));
    expect(made, device, plan);
  }
}
inline void run_every_plan(const row_settings& with) {
  run_every_plan(with, [](const row_case&, const rows_on_device&, std::uint32_t) {});
}

// The groups take one to ten blocks of rows, odd and even numbers, with a low last block or
// without. Columns take three and four blocks.
inline const std::vector<std::int64_t> plan_sizes{0, 1, 65, 0, 128, 129, 1000, 300, 320, 450, 257, 1153};

}  // namespace tmap::gemm::testing
