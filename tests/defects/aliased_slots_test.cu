// SPDX-License-Identifier: Apache-2.0
// Reproduces NVIDIA/cudnn-frontend #750: several launches in one graph shared a workspace that held
// their map. Each call site needs slots of its own.
#include <tmap/encode_batch.hpp>
#include <tmap/map_service.hpp>

#include "defects/captured_graph.hpp"
#include "defects/consume_lines.cuh"
#include "defects/defect_fixture.hpp"

namespace tmap::testing::aliased_slots_cases {
namespace {

constexpr std::uint32_t maps = 4;
constexpr std::uint32_t call_sites = 3;
constexpr std::uint32_t replays = 8;

struct call_site_arrays {
  tagged_lines lines{maps * call_sites * replays};
  device_array<map_patch> patches{maps * call_sites};
  device_array<line_use> uses{maps * call_sites};
  device_array<consumed_lines> found{std::vector<consumed_lines>(1)};

  void choose(std::uint32_t replay) const {
    patches.upload(lines.patches(replay * maps * call_sites, maps * call_sites));
    uses.upload(tagged_lines::uses(replay * maps * call_sites, maps * call_sites));
  }
};

class aliased_slots : public defect_test {
 protected:
  /// First prepares the maps of all call sites, then lets each site consume its own. `prepare(site,
  /// stream)` returns a ref.
  template <class Prepare>
  static std::uint64_t run(const call_site_arrays& arrays, const Prepare& prepare) {
    const own_stream stream;
    arrays.found.upload({consumed_lines{}});
    const captured_graph graph(stream, [&](cudaStream_t capturing) {
      map_batch_ref refs[call_sites];
      for (std::uint32_t site = 0; site < call_sites; ++site) refs[site] = prepare(site, capturing);
      for (std::uint32_t site = 0; site < call_sites; ++site) {
        const line_use* const uses = arrays.uses.data() + site * maps;
        launch_consume_lines({refs[site], uses}, 0, maps, arrays.found.data(), capturing);
      }
    });
    for (std::uint32_t replay = 0; replay < replays; ++replay) {
      arrays.choose(replay);
      graph.launch(stream);
      stream.wait();
    }
    const consumed_lines found = arrays.found.download()[0];
    EXPECT_EQ(found.tiles, maps * call_sites * replays);
    return found.foreign;
  }
};

TEST_F(aliased_slots, cudnn_frontend_750_each_call_site_has_its_own) {
  const call_site_arrays arrays;
  result<map_service> service = map_service::create({.capacity = 64});
  TMAP_ASSERT_OK(service);
  const result<map_template> base = line_template();
  TMAP_ASSERT_OK(base);
  const auto patches_of = [&](std::uint32_t site) { return patch_array{arrays.patches.data() + site * maps}; };
  const std::uint64_t real = run(arrays, [&](std::uint32_t site, cudaStream_t stream) {
    const result<map_batch> batch = service->encode(*base, patches_of(site), maps, {stream});
    EXPECT_TRUE(batch.has_value());
    return batch ? batch->ref() : map_batch_ref{};
  });
  const device_array<tensor_map> shared(maps);
  const std::uint64_t seeded = run(arrays, [&](std::uint32_t site, cudaStream_t stream) {
    EXPECT_TRUE(encode_batch(*base, patches_of(site), shared.data(), maps, {stream}).has_value());
    map_batch_ref ref;
    ref.slots = shared.data();
    ref.count = maps;
    return ref;
  });
  expect_foreign_only_when_seeded(real, seeded);
}

}  // namespace
}  // namespace tmap::testing::aliased_slots_cases
