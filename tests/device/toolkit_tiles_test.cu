// SPDX-License-Identifier: Apache-2.0
// Compares tile loads, stores and reductions in all their forms with the simulator. Compares every
// byte of the tensor's memory, of its surroundings, and of the block's shared memory.
#include <tmap/device/reduce_copy.cuh>
#include <tmap/simulator.hpp>

#include <numeric>
#include <type_traits>
#include <utility>

#include "device/toolkit_maps.cuh"

namespace tmap::testing::toolkit_tiles_cases {
namespace {

enum class tile_action { load, load_hinted, load_prefetched, store, store_hinted, reduce, reduce_typed };

constexpr std::uint32_t room = 4096;   // bytes of shared memory, of which a tile takes some
constexpr std::uint64_t margin = 256;  // bytes before and after the tensor
constexpr std::uint32_t pairs_of_type = 8;
constexpr std::uint32_t pairs = hopper_element_type_count * pairs_of_type;

template <std::size_t Pair, std::uint32_t Rank>
__device__ void reduce_as_pair(device::acquired_map map, const std::int32_t (&at)[Rank], const void* tile) {
  constexpr auto type = static_cast<element_type>(Pair / pairs_of_type);
  constexpr auto operation = static_cast<reduction>(Pair % pairs_of_type);
  if constexpr (reductions_of(type).contains(operation)) {
    device::reduce_tile<operation, type>(map, at, tile);
  }
}

template <std::uint32_t Rank, std::size_t... Pair>
__device__ void reduce_typed(std::uint32_t pair, device::acquired_map map, const std::int32_t (&at)[Rank],
                             const void* tile, std::index_sequence<Pair...>) {
  ((pair == Pair ? reduce_as_pair<Pair>(map, at, tile) : void()), ...);
}

/// Does `action` with one block. `image` is its shared memory, in and out.
template <std::uint32_t Rank>
struct tile_use {
  tile_action action;
  reduction operation;
  element_type type;
  std::int32_t at[Rank];
  std::uint32_t bytes_of_tile;
  unsigned char* image;

  __device__ void operator()(device::acquired_map map) const {
    alignas(128) __shared__ unsigned char tile[room];
    __shared__ device::tile_barrier barrier;
    for (std::uint32_t i = threadIdx.x; i < room; i += blockDim.x) tile[i] = image[i];
    device::fence_shared_writes();
    if (threadIdx.x == 0) barrier.init(1), device::fence_barrier_init();
    __syncthreads();
    if (threadIdx.x == 0) {
      if (action <= tile_action::load_prefetched) {
        barrier.arrive_expect(bytes_of_tile);
        load(map, tile, barrier);
        barrier.wait(0);
      } else {
        store(map, tile);
        device::commit_stores();
        device::wait_stores_written();
      }
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < room; i += blockDim.x) image[i] = tile[i];
  }

 private:
  __device__ void load(device::acquired_map map, unsigned char* tile, device::tile_barrier& barrier) const {
    using device::l2_eviction;
    if (action == tile_action::load_hinted) {
      const device::cache_hint hint = device::make_cache_hint<l2_eviction::last, l2_eviction::first>(0.5f);
      return device::load_tile(tile, map, at, barrier, hint);
    }
    if (action == tile_action::load_prefetched) device::prefetch_tile(map, at);
    device::load_tile(tile, map, at, barrier);
  }

  __device__ void store(device::acquired_map map, const unsigned char* tile) const {
    switch (action) {
      case tile_action::store: return device::store_tile(map, at, tile);
      case tile_action::store_hinted:
        return device::store_tile(map, at, tile, device::make_cache_hint<device::l2_eviction::first>());
      case tile_action::reduce: return device::reduce_tile(operation, map, at, tile);
      default: break;
    }
    const auto pair = static_cast<std::uint32_t>(type) * pairs_of_type + static_cast<std::uint32_t>(operation);
    reduce_typed(pair, map, at, tile, std::make_index_sequence<pairs>{});
  }
};

/// Holds a tensor whose box reaches past its edges, with random bytes in and around both.
template <std::uint32_t Rank>
class tile_trial {
 public:
  explicit tile_trial(element_type type) : type_(type), image_(random_bytes(room, 7)), shared_(image_) {
    const std::uint64_t dims[] = {32, 5, 4, 3, 2};
    const std::uint32_t box[] = {16, 3, 2, 2, 1};
    const std::uint64_t elements = std::accumulate(dims, dims + Rank, std::uint64_t{1}, std::multiplies<>{});
    memory_ = random_bytes(2 * margin + element_bytes(type, elements), 3);
    there_ = std::make_unique<device_array<unsigned char>>(memory_);
    spec = packed_spec(type, there_->address() + margin, {dims, Rank}, {box, Rank});
  }

  tile_use<Rank> use(tile_action action, reduction operation) {
    tile_use<Rank> made{action, operation, type_, {}, static_cast<std::uint32_t>(tile_bytes(spec)), shared_.data()};
    const std::int32_t load_at[] = {-16, 3, -1, 2, 1};
    const std::int32_t store_at[] = {16, 3, 3, 1, 1};
    std::copy_n(action <= tile_action::load_prefetched ? load_at : store_at, Rank, made.at);
    there_->upload(memory_);
    shared_.upload(image_);
    return made;
  }

  void expect_like_simulator(const tile_use<Rank>& used) const {
    const auto map = encode(spec);
    TMAP_ASSERT_OK(map);
    bytes memory = memory_;
    bytes image = image_;
    const simulator::memory_window windows[] = {
        {there_->address(), {reinterpret_cast<std::byte*>(memory.data()), memory.size()}}};
    const simulator::copy_engine engine(windows);
    const cuda::std::span<std::byte> tile(reinterpret_cast<std::byte*>(image.data()), used.bytes_of_tile);
    if (used.action <= tile_action::load_prefetched) {
      TMAP_ASSERT_OK(engine.load(*map, used.at, tile));
    } else if (used.action <= tile_action::store_hinted) {
      TMAP_ASSERT_OK(engine.store(*map, used.at, tile));
    } else {
      TMAP_ASSERT_OK(engine.reduce(used.operation, *map, used.at, tile));
    }
    EXPECT_NE(std::make_pair(memory, image), std::make_pair(memory_, image_)) << "the action changed nothing";
    EXPECT_TRUE(same_bytes(there_->download(), memory));
    EXPECT_TRUE(same_bytes(shared_.download(), image));
  }

  tensor_spec spec;

 private:
  element_type type_;
  bytes memory_;
  bytes image_;
  std::unique_ptr<device_array<unsigned char>> there_;
  device_array<unsigned char> shared_;
};

class toolkit_tiles : public toolkit {
 protected:
  template <std::uint32_t Rank>
  void expect_right(tile_trial<Rank>& trial, tile_action action, reduction operation = {}) {
    for (const map_place place : map_places) {
      SCOPED_TRACE(static_cast<int>(place));
      const tile_use<Rank> use = trial.use(action, operation);
      use_map(place, trial.spec, {}, use);
      trial.expect_like_simulator(use);
    }
  }

  template <std::uint32_t... Rank>
  void expect_right_in_ranks(tile_action action, std::integer_sequence<std::uint32_t, Rank...>) {
    const auto in_rank = [&](auto rank) {
      SCOPED_TRACE(rank + 1);
      tile_trial<rank + 1> trial(element_type::u32);
      expect_right(trial, action, reduction::bit_xor);
    };
    (in_rank(std::integral_constant<std::uint32_t, Rank>{}), ...);
  }

  void expect_right_in_every_rank(tile_action action) {
    expect_right_in_ranks(action, std::make_integer_sequence<std::uint32_t, max_rank>{});
  }
};

TEST_F(toolkit_tiles, load) {
  expect_right_in_every_rank(tile_action::load);
}
TEST_F(toolkit_tiles, load_with_a_cache_hint) {
  expect_right_in_every_rank(tile_action::load_hinted);
}
TEST_F(toolkit_tiles, load_after_a_prefetch) {
  expect_right_in_every_rank(tile_action::load_prefetched);
}
TEST_F(toolkit_tiles, store) {
  expect_right_in_every_rank(tile_action::store);
}
TEST_F(toolkit_tiles, store_with_a_cache_hint) {
  expect_right_in_every_rank(tile_action::store_hinted);
}
TEST_F(toolkit_tiles, reduce) {
  expect_right_in_every_rank(tile_action::reduce);
}

TEST_F(toolkit_tiles, reduce_of_every_operation_and_type) {
  std::uint32_t tried = 0;
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    const auto type = static_cast<element_type>(pair / pairs_of_type);
    const auto operation = static_cast<reduction>(pair % pairs_of_type);
    if (!reductions_of(type).contains(operation)) continue;
    SCOPED_TRACE(std::string(name(type)) + ", operation " + std::to_string(pair % pairs_of_type));
    tile_trial<2> trial(type);
    expect_right(trial, tile_action::reduce, operation);
    expect_right(trial, tile_action::reduce_typed, operation);
    ++tried;
  }
  EXPECT_EQ(tried, 33u);
}

// Pairs that the copy engine lacks must not compile.
template <reduction Operation, element_type Type>
struct reduce_function {
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) -> decltype(device::reduce_tile<Operation, Type>(arguments...));
};
template <reduction Operation, element_type Type>
constexpr bool compiles =
    std::is_invocable_v<reduce_function<Operation, Type>, device::acquired_map, const std::int32_t (&)[2], const void*>;

template <element_type Type, std::uint32_t... Operation>
constexpr std::uint32_t compiling(std::integer_sequence<std::uint32_t, Operation...>) {
  return ((compiles<static_cast<reduction>(Operation), Type> ? 1u << Operation : 0) | ...);
}
template <element_type Type>
constexpr std::uint32_t compiling_operations = compiling<Type>(std::make_integer_sequence<std::uint32_t, 8>{});

// The bits are add 1, min 2, max 4, inc 8, dec 16, and 32, or 64, xor 128.
static_assert(compiling_operations<element_type::u32> == 255);
static_assert(compiling_operations<element_type::i32> == 231);
static_assert(compiling_operations<element_type::u64> == 231);
static_assert(compiling_operations<element_type::i64> == 6);
static_assert(compiling_operations<element_type::f16> == 7);
static_assert(compiling_operations<element_type::bf16> == 7);
static_assert(compiling_operations<element_type::f32> == 1);
static_assert(compiling_operations<element_type::f32_ftz> == 1);
static_assert(compiling_operations<element_type::tf32> == 1);
static_assert(compiling_operations<element_type::tf32_ftz> == 1);
static_assert(compiling_operations<element_type::f64> == 1);
static_assert(compiling_operations<element_type::u8> == 0);
static_assert(compiling_operations<element_type::u16> == 0);

}  // namespace
}  // namespace tmap::testing::toolkit_tiles_cases
