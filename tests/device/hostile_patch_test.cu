// SPDX-License-Identifier: Apache-2.0
// Encodes random patches inside address windows, and uses every resulting map for loads and stores
// at every kind of corner. Nothing may fault or hang, and nothing outside the windows may be read
// or written.
#include <tmap/device/map_guard.cuh>
#include <tmap/encode_batch.hpp>

#include <memory>

#include "device/gpu_fixture.hpp"
#include "device/map_consumer.cuh"
#include "device/safe_map.hpp"
#include "support/random_patch.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t margin = 1 << 16;
constexpr std::uint64_t window_bytes[] = {1 << 22, 1 << 18};
constexpr unsigned char inside = 0x11;

/// Holds two windows in one allocation, with canaries before, between and after them.
class guarded_windows {
 public:
  guarded_windows() : memory_(3 * margin + window_bytes[0] + window_bytes[1]) {
    const std::uint64_t first = memory_.address() + margin;
    const std::uint64_t second = first + window_bytes[0] + margin;
    windows_ = {{first, first + window_bytes[0]}, {second, second + window_bytes[1]}};
    reset();
  }

  const std::vector<address_window>& windows() const { return windows_; }

  void reset() const {
    memory_.fill_poison();
    for (const address_window& each : windows_) {
      EXPECT_EQ(cudaMemset(reinterpret_cast<void*>(each.begin), inside, each.end - each.begin), cudaSuccess);
    }
  }

  std::uint64_t damaged_canaries() const {
    const std::vector<unsigned char> bytes = memory_.download();
    std::uint64_t damaged = 0;
    for (std::uint64_t i = 0; i < bytes.size(); ++i) {
      const std::uint64_t at = memory_.address() + i;
      bool is_inside = false;
      for (const address_window& each : windows_) is_inside |= each.begin <= at && at < each.end;
      if (!is_inside) damaged += bytes[i] != canary;
    }
    return damaged;
  }

 private:
  device_array<unsigned char> memory_;
  std::vector<address_window> windows_;
};
static_assert(device_array<unsigned char>::poison == canary);

map_patch any_bits(random_source& random) {
  std::uint64_t words[sizeof(map_patch) / 8];
  for (std::uint64_t& word : words) word = random.bits();
  map_patch patch;
  std::memcpy(&patch, words, sizeof(patch));
  return patch;
}

/// Returns mostly small tensors in or near a window. Most of them are aligned.
map_patch near_a_window(random_patch_source& source, const map_template& base,
                        const std::vector<address_window>& windows) {
  random_source& random = source.random();
  const address_window& window = windows[random.below(windows.size())];
  const std::uint64_t alignment = random.one_in(16) ? 8 : 32;
  // Sets the boxes and element strides. The code below sets the other fields.
  map_patch patch = random.one_in(2) ? source.any(base) : patch_of(base.spec);
  patch.global_address = window.begin - 4096 + alignment * random.below((window.end - window.begin + 8192) / alignment);
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    patch.global_dim[axis] = random.one_in(40) ? random.of_random_length(64) : 1 + random.of_random_length(7);
    if (axis + 1 == max_rank) break;
    patch.global_stride_bytes[axis] = random.one_in(40) ? random.of_random_length(64) : 32 * random.below(200);
  }
  if (random.one_in(8)) patch.global_address = window.end - 32 * (1 + random.below(64));
  return patch;
}

map_patch any_patch(random_patch_source& source, const map_template& base, const std::vector<address_window>& windows) {
  switch (source.random().below(8)) {
    case 0: return any_bits(source.random());
    case 1: return source.any(base);
    default: return near_a_window(source, base, windows);
  }
}

/// Returns a template whose tile takes at most `tile_limit` bytes.
map_template random_template(random_patch_source& source, random_spec_source& specs, std::uint32_t tile_limit,
                             bool patches_boxes) {
  for (;;) {
    const tensor_spec spec = specs.legal();
    if (tile_footprint_bytes(spec) > tile_limit) continue;
    const patch_fields every = patches_boxes ? patch_everything(spec.rank) : patch_extents(spec.rank);
    const bool some = source.random().one_in(4);
    const result<map_template> base =
        make_template(spec, some ? (every & static_cast<patch_fields>(source.random().bits())) | patch_address : every);
    EXPECT_TRUE(base.has_value()) << to_string(base.error());
    if (base) return *base;
    return {};
  }
}

class hostile_patch : public gpu_test {
 protected:
  static constexpr std::uint64_t batch = 1 << 17;

  void consume(const map_template& base, const device_array<map_patch>& patches, const device_array<tensor_map>& maps,
               const device_array<map_status>& statuses, std::uint32_t tile_limit,
               const device_array<consumed>& totals) {
    const bool rounds = base.spec.type == element_type::tf32 || base.spec.type == element_type::tf32_ftz;
    const auto launch = [&](auto kernel) {
      TMAP_ASSERT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
      kernel<<<132 * 8, 32, tile_limit>>>(base, patches.data(), maps.data(), statuses.data(), batch, tile_limit,
                                          !rounds, totals.data());
    };
    switch (base.spec.rank) {
      case 1: return launch(consume_maps<1>);
      case 2: return launch(consume_maps<2>);
      case 3: return launch(consume_maps<3>);
      case 4: return launch(consume_maps<4>);
      default: return launch(consume_maps<5>);
    }
  }

  /// Runs one batch of one template.
  void run_batch(std::uint64_t seed, std::uint32_t tile_limit, bool patches_boxes) {
    random_patch_source source{seed};
    random_spec_source specs{~seed};
    const map_template base = random_template(source, specs, tile_limit, patches_boxes);
    std::vector<map_patch> patches(batch);
    on_all_threads(batch, [&](std::uint64_t begin, std::uint64_t end) {
      random_patch_source mine{(seed << 32) + begin};
      for (std::uint64_t i = begin; i < end; ++i) patches[i] = any_patch(mine, base, memory_->windows());
    });
    const device_array<map_patch> array(patches);
    const device_array<tensor_map> maps(batch);
    const device_array<map_status> statuses(batch);
    const device_array<batch_header> header(1);
    const device_array<address_window> windows(memory_->windows());
    const device_array<consumed> totals(std::vector<consumed>(1));
    memory_->reset();
    TMAP_ASSERT_OK(encode_batch(base, patch_array{array.data()}, maps.data(), batch,
                                {.where = {cudaStream_t{}},
                                 .statuses = statuses.data(),
                                 .header = header.data(),
                                 .windows = {windows.data(), static_cast<std::uint32_t>(windows.size())}}));
    consume(base, array, maps, statuses, tile_limit, totals);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    check(totals.download()[0], header.download()[0]);
  }

  void check(const consumed& found, const batch_header& header) {
    ASSERT_EQ(found.maps + found.too_wide, batch);
    ASSERT_EQ(found.canaries, 0u);
    ASSERT_EQ(memory_->damaged_canaries(), 0u);
    check_page();
    used_ += found.maps;
    too_wide_ += found.too_wide;
    refused_ += header.bad_count + header.empty_count;
    judged_ += batch;
  }

  /// Stores at coordinate 0 of safe maps may write the first 32 bytes of the page. Nothing writes
  /// the rest.
  void check_page() const {
    std::vector<unsigned char> page(sizeof(device::guard_page));
    void* const address = reinterpret_cast<void*>(page_);
    TMAP_ASSERT_CUDA(cudaMemcpy(page.data(), address, page.size(), cudaMemcpyDeviceToHost));
    ASSERT_EQ(std::count(page.begin() + 32, page.end(), 0), 96);
    TMAP_ASSERT_CUDA(cudaMemset(address, 0, page.size()));
  }

  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    memory_ = std::make_unique<guarded_windows>();
    page_ = library_page();
  }

  std::unique_ptr<guarded_windows> memory_;
  std::uint64_t page_{};
  std::uint64_t used_{};
  std::uint64_t too_wide_{};
  std::uint64_t refused_{};
  std::uint64_t judged_{};
};

TEST_F(hostile_patch, any_extents_are_harmless) {
  const std::uint64_t wanted = scaled(10'500'000);
  for (std::uint64_t seed = 1; judged_ < wanted; ++seed) {
    run_batch(seed, 16 * 1024, false);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
  EXPECT_EQ(used_, judged_);
  EXPECT_GT(refused_, judged_ / 10);
  EXPECT_GT(judged_ - refused_, judged_ / 10) << "too few patches made maps of their own";
  RecordProperty("consumed", std::to_string(used_));
  RecordProperty("refused", std::to_string(refused_));
}

// A consumer must know the box to expect its bytes, and must have room for it. Wider tiles are
// therefore left out.
TEST_F(hostile_patch, any_boxes_and_element_strides_are_harmless) {
  const std::uint64_t wanted = scaled(1 << 20);
  for (std::uint64_t seed = 1001; judged_ < wanted; ++seed) {
    run_batch(seed, 200 * 1024, true);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
  EXPECT_GT(used_, judged_ / 2);
  EXPECT_GT(judged_ - refused_, judged_ / 20);
  RecordProperty("consumed", std::to_string(used_));
  RecordProperty("too_wide", std::to_string(too_wide_));
}

}  // namespace
}  // namespace tmap::testing
