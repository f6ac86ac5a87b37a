// SPDX-License-Identifier: Apache-2.0
// Tests the encoder with patches that must not become maps: the statuses, the header, and the bytes
// of the safe empty map.
#include <tmap/encode_batch.hpp>

#include <optional>

#include "device/gpu_fixture.hpp"
#include "device/safe_map.hpp"
#include "lib/encode/encode_batch.hpp"
#include "support/patch_cases.hpp"

namespace tmap::testing {
namespace {

const cuda::stream_ref default_stream{cudaStream_t{}};

/// Holds what a batch wrote in device memory.
struct encoded_batch {
  std::vector<tensor_map> maps;
  std::vector<map_status> statuses;
  batch_header header;
};

/// Encodes by the given plan, or by the one that the library chooses.
encoded_batch encode_all(const map_template& base, const std::vector<map_patch>& patches,
                         const std::vector<address_window>& windows = {},
                         std::optional<kernels::encode_plan> plan = std::nullopt) {
  const device_array<map_patch> source(patches);
  const device_array<tensor_map> slots(patches.size());
  const device_array<map_status> statuses(patches.size());
  const device_array<batch_header> header(1);
  const device_array<address_window> ranges(windows);
  const encode_run run{.where = {default_stream},
                       .statuses = statuses.data(),
                       .header = header.data(),
                       .windows = {ranges.data(), windows.size()}};
  const patch_array array{source.data()};
  if (plan) {
    EXPECT_EQ(kernels::launch_header_reset(header.data(), nullptr), cudaSuccess);
    EXPECT_EQ(kernels::launch_encode(*plan, base, array, nullptr, slots.data(), patches.size(), nullptr,
                                     terms_of(run, nullptr), {}),
              cudaSuccess);
  } else {
    const result<void> encoded = encode_batch(base, array, slots.data(), patches.size(), run);
    EXPECT_TRUE(encoded.has_value()) << to_string(encoded.error());
  }
  return {slots.download(), statuses.download(), header.download()[0]};
}

void expect_header(const batch_header& header, std::uint32_t bad, std::uint32_t first_bad, std::uint32_t empty) {
  EXPECT_EQ(header.bad_count, bad);
  EXPECT_EQ(header.first_bad, first_bad);
  EXPECT_EQ(header.empty_count, empty);
}

using guarded_encode = gpu_test;

TEST_F(guarded_encode, each_rule_broken_alone) {
  for (const patch_case& each : all_patch_cases()) {
    SCOPED_TRACE(std::string{info(each.id).name} + ": " + each.what);
    const result<map_template> base = make_template(each.base, patch_everything(each.base.rank));
    TMAP_ASSERT_OK(base);
    const encoded_batch made = encode_all(*base, {each.good, each.bad, each.good});
    const bool is_empty = each.what == "dim 0";
    EXPECT_TRUE(made.statuses[0].is_good() && made.statuses[2].is_good());
    EXPECT_EQ(made.statuses[1].is_empty(), is_empty);
    EXPECT_TRUE(is_empty || made.statuses[1].bits == std::uint64_t{1} << static_cast<std::uint32_t>(each.id));
    expect_header(made.header, !is_empty, is_empty ? no_bad_item : 1, is_empty);
    EXPECT_EQ(made.maps[0], encode(each.base).value());
    EXPECT_EQ(made.maps[1], safe_map(*base));
    EXPECT_EQ(made.maps[2], made.maps[0]);
  }
}

/// Returns patches of which every seventh is bad and every fifth empty, counting from `first_bad`.
/// A patch that is both is empty.
std::vector<map_patch> planted(std::uint64_t count, std::uint64_t first_fault) {
  std::vector<map_patch> patches(count, patch_of(plain_spec()));
  for (std::uint64_t i = first_fault; i < count; ++i) {
    if ((i - first_fault) % 7 == 0) patches[i].global_address += 8;
    if ((i - first_fault) % 5 == 3) patches[i].global_dim[2] = 0;
  }
  return patches;
}

void expect_planted(const encoded_batch& made, const map_template& base, std::uint64_t first_fault) {
  const tensor_map good = encode(plain_spec()).value();
  const tensor_map safe = safe_map(base);
  std::uint32_t bad = 0;
  std::uint32_t empty = 0;
  for (std::uint64_t i = 0; i < made.maps.size(); ++i) {
    const bool is_empty = i >= first_fault && (i - first_fault) % 5 == 3;
    const bool is_bad = !is_empty && i >= first_fault && (i - first_fault) % 7 == 0;
    ASSERT_EQ(made.statuses[i].is_empty(), is_empty) << i;
    ASSERT_EQ(rules_of(made.statuses[i]).contains(rule::t06_address_multiple_of_16), is_bad) << i;
    ASSERT_EQ(made.maps[i], is_bad || is_empty ? safe : good) << i;
    bad += is_bad;
    empty += is_empty;
  }
  const bool any = first_fault < made.maps.size();
  expect_header(made.header, bad, any ? static_cast<std::uint32_t>(first_fault) : no_bad_item, empty);
}

TEST_F(guarded_encode, header_and_statuses_of_every_size_and_plan) {
  const result<map_template> base = make_template(plain_spec(), patch_extents(3));
  TMAP_ASSERT_OK(base);
  for (const std::uint64_t count : {1ull, 31ull, 33ull, 1000ull, 65537ull}) {
    for (const std::uint64_t first_fault : {std::uint64_t{0}, count / 2, count - 1, count}) {
      const std::vector<map_patch> patches = planted(count, first_fault);
      expect_planted(encode_all(*base, patches), *base, first_fault);
      for (const std::uint32_t maps_per_warp : {1u, 3u, 32u}) {
        expect_planted(encode_all(*base, patches, {}, kernels::encode_plan{maps_per_warp}), *base, first_fault);
      }
    }
  }
}

TEST_F(guarded_encode, a_zeroed_template_has_the_same_safe_map_but_for_what_it_lacks) {
  const result<map_template> base = make_zeroed_template(plain_spec(), patch_extents(3));
  TMAP_ASSERT_OK(base);
  tensor_map expected = safe_map(*base);
  expected.words[8] = expected.words[9] = 0;
  EXPECT_EQ(encode_all(*base, planted(40, 0)).maps[0], expected);
}

TEST_F(guarded_encode, a_template_that_fixes_the_dims_loses_them_in_its_safe_map) {
  const result<map_template> base = make_template(plain_spec(), patch_address);
  TMAP_ASSERT_OK(base);
  const encoded_batch made = encode_all(*base, planted(3, 1));
  EXPECT_EQ(made.maps[0], encode(plain_spec()).value());
  EXPECT_EQ(made.maps[1], safe_map(*base));
  EXPECT_NE(made.maps[1].words[4], made.maps[0].words[4]);
}

TEST_F(guarded_encode, address_windows) {
  const result<map_template> base = make_template(plain_spec(), patch_extents(3));
  TMAP_ASSERT_OK(base);
  std::vector<map_patch> patches(5, patch_of(plain_spec()));  // 128 KiB that begin at 64 KiB
  patches[1].global_address -= 16;
  patches[2].global_address += 16;
  patches[3].global_dim[2] += 1;
  patches[4].global_address = 1 << 24;
  const std::vector<address_window> windows{{1 << 24, (1 << 24) + 0x20000}, {0, 16}, {0x10000, 0x30000}};
  const encoded_batch made = encode_all(*base, patches, windows);
  expect_header(made.header, 3, 1, 0);
  for (const int i : {0, 4}) EXPECT_TRUE(made.statuses[static_cast<std::size_t>(i)].is_good()) << i;
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(made.statuses[i].bits, std::uint64_t{1} << static_cast<std::uint32_t>(rule::t38_address_window)) << i;
    EXPECT_EQ(made.maps[i], safe_map(*base)) << i;
  }
}

TEST_F(guarded_encode, a_captured_batch_judges_anew_at_each_replay) {
  const result<map_template> base = make_template(plain_spec(), patch_extents(3));
  TMAP_ASSERT_OK(base);
  const device_array<map_patch> patches(planted(100, 40));
  const device_array<tensor_map> slots(100);
  const device_array<map_status> statuses(100);
  const device_array<batch_header> header(1);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  TMAP_ASSERT_CUDA(cudaStreamCreate(&stream));
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  TMAP_ASSERT_OK(encode_batch(*base, patch_array{patches.data()}, slots.data(), 100,
                              {.where = {stream}, .statuses = statuses.data(), .header = header.data()}));
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  TMAP_ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (const std::uint64_t first_fault : {40u, 100u, 99u, 0u, 100u}) {
    patches.upload(planted(100, first_fault));
    TMAP_ASSERT_CUDA(cudaGraphLaunch(executable, stream));
    expect_planted({slots.download(), statuses.download(), header.download()[0]}, *base, first_fault);
  }
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(executable));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  TMAP_ASSERT_CUDA(cudaStreamDestroy(stream));
}

/// Compares the device's verdict on random patches with the host's `broken_rules` of the whole
/// spec.
TEST_F(guarded_encode, verdicts_equal_the_host) {
  constexpr std::uint64_t batch = 1 << 16;
  const std::uint64_t wanted = scaled(std::uint64_t{160} << 16);
  std::uint64_t bad = 0;
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 1; compared < wanted; ++seed) {
    random_patch_source templates{seed};
    map_template base = templates.base();
    base.fields |= patch_address;
    std::vector<map_patch> patches(batch);
    std::vector<map_status> expected(batch);
    on_all_threads(batch, [&](std::uint64_t begin, std::uint64_t end) {
      random_patch_source source{(seed << 32) + begin};
      for (std::uint64_t i = begin; i < end; ++i) {
        patches[i] = source.any(base);
        const tensor_spec spec = patched_spec(base, patches[i]);
        const bool is_empty = std::count(spec.global_dim, spec.global_dim + spec.rank, 0u) != 0;
        expected[i].bits = is_empty ? map_status::empty_bit : broken_rules(spec).bits;
      }
    });
    const encoded_batch made = encode_all(base, patches);
    ASSERT_TRUE(made.statuses == expected) << "seed " << seed;
    const auto is_bad = [](map_status status) { return status.is_bad(); };
    const auto count = static_cast<std::uint32_t>(std::count_if(expected.begin(), expected.end(), is_bad));
    ASSERT_EQ(made.header.bad_count, count);
    bad += count;
    compared += batch;
  }
  EXPECT_GT(bad, compared / 10);
  RecordProperty("patches", std::to_string(compared));
}

}  // namespace
}  // namespace tmap::testing
