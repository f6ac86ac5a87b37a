// SPDX-License-Identifier: Apache-2.0
// Reproduces facebookexperimental/triton #2734 with real slots. The slots that alignment_test.cpp
// expects to be refused are accepted at 128 bytes, and only there.
#include <tmap/encode_batch.hpp>
#include <tmap/map_service.hpp>

#include <string>

#include "defects/defect_fixture.hpp"
#include "defects/tagged_lines.hpp"
#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

class aligned_slots : public defect_test {};

TEST_F(aligned_slots, triton_2734_128_bytes_and_no_less) {
  const result<map_template> base = line_template();
  TMAP_ASSERT_OK(base);
  const device_array<map_patch> patches(std::vector<map_patch>{line_patch(1 << 20)});
  const device_array<unsigned char> memory(1024);
  ASSERT_EQ(memory.address() % 256, 0u);
  for (std::uint64_t offset = 0; offset <= 512; offset += 64) {
    auto* const slots = reinterpret_cast<tensor_map*>(memory.address() + offset);
    const result<void> answer = encode_batch(*base, patch_array{patches.data()}, slots, 1, {cudaStream_t{}});
    EXPECT_EQ(answer.has_value(), offset % 128 == 0) << offset;
    if (!answer) expect_refused(answer, "slots", std::to_string(offset));
  }
}

TEST_F(aligned_slots, triton_2734_memory_of_a_service) {
  constexpr std::uint64_t capacity = 16;
  const std::uint64_t bytes = service_memory_bytes(capacity);
  const device_array<unsigned char> memory(bytes + 256);
  for (const std::uint64_t offset : {0u, 64u, 128u, 256u}) {
    const result<map_service> made =
        map_service::create({.capacity = capacity, .memory = memory.data() + offset, .memory_bytes = bytes});
    EXPECT_EQ(made.has_value(), offset % 256 == 0) << offset;
    if (!made) expect_refused(made, "options.memory", std::to_string(offset));
  }
}

}  // namespace
}  // namespace tmap::testing
