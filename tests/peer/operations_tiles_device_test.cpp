// SPDX-License-Identifier: Apache-2.0
// Moves tiles through maps of tensors on other ranks, whose rows end inside a tile. Compares every
// byte of all windows, also between rows and between tensors.
#include <tmap/encode_batch.hpp>
#include <tmap/peer_exchange.hpp>

#include <cstring>
#include <memory>
#include <vector>

#include "peer/operations_kernels.hpp"
#include "peer/ranks_on_gpus.hpp"

namespace tmap::testing::operations {
namespace {

constexpr std::uint64_t tile_window_bytes = 1 << 20;
constexpr std::uint64_t tensors_at = 4096;        // signals lie before it
constexpr std::uint64_t tensor_distance = 16384;  // from one tensor to the next
constexpr std::uint64_t pitch_words = 80;
constexpr std::uint32_t tensor_columns = 60;  // four less than a tile has
constexpr std::uint32_t groups = 4;           // tensors of each writer on each rank
constexpr std::uint32_t canary = 0x5a5a5a5a;

/// Returns the rows of a tensor. Some have none, and most end inside a tile.
std::uint32_t rows_of(std::uint32_t owner, std::uint32_t writer, std::uint32_t group) {
  return (17 * owner + 11 * writer + 13 * group) % 41;
}
std::uint64_t place_of(std::uint32_t writer, std::uint32_t group) {
  return tensors_at + (writer * groups + group) * tensor_distance;
}

/// Holds the maps by which a rank reaches the tensors of one writer on all ranks.
struct maps_of_writer {
  explicit maps_of_writer(std::uint32_t tensors) : maps(tensors), rows(tensors) {}
  device_array<tensor_map> maps;
  device_array<std::uint64_t> rows;
};

/// Places what a rank needs outside its window.
struct tile_memory_of_rank {
  explicit tile_memory_of_rank(std::uint32_t tensors)
      : stored(tensors), loaded(tensors), counts(tensors), out(std::uint64_t{tensors} * most_tiles * tile_elements) {}
  maps_of_writer stored, loaded;
  device_array<operation_counts> counts;
  device_array<float> out;
};

class tiles_on_gpus : public ranks_on_gpus {
 protected:
  tiles_on_gpus() : ranks_on_gpus(tile_window_bytes) {}

  void SetUp() override {
    ranks_on_gpus::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      upload(rank, 0, words(tensors_at / 4));
      upload(rank, tensors_at, words((tile_window_bytes - tensors_at) / 4, canary));
      memory_.push_back(std::make_unique<tile_memory_of_rank>(tensors()));
      memory_[rank]->counts.upload(std::vector<operation_counts>(tensors()));
      TMAP_ASSERT_CUDA(load_kernels());
      TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    }
  }
  void TearDown() override {
    memory_.clear();
    ranks_on_gpus::TearDown();
  }

  std::uint32_t tensors() const { return count() * groups; }

  /// Makes the maps of a rank for the tensors of a writer, by a batch with an owner for each.
  void encode(std::uint32_t rank, std::uint32_t writer, const maps_of_writer& to) const {
    const rank_on_gpu& at = on(rank);
    std::vector<std::uint32_t> owners;
    std::vector<std::uint64_t> addresses, rows;
    for (std::uint32_t i = 0; i < tensors(); ++i) {
      owners.push_back(i / groups);
      addresses.push_back(at.window.ref().address(rank, place_of(writer, i % groups)));
      rows.push_back(rows_of(i / groups, writer, i % groups));
    }
    const std::uint64_t dims[] = {tensor_columns, 41};
    const std::uint32_t box[] = {tile_columns, tile_rows};
    tensor_spec spec = packed_spec(element_type::f32, addresses[0], {dims, 2}, {box, 2});
    spec.global_stride_bytes[0] = 4 * pitch_words;
    const auto base = make_template(spec, patch_address | patch_dim(1));
    TMAP_ASSERT_OK(base);
    const device_array<std::uint32_t> owners_there(owners);
    const device_array<std::uint64_t> addresses_there(addresses);
    const device_array<batch_header> header(1);
    to.rows.upload(rows);
    encode_run run{at.stream->ref()};
    run.header = header.data();
    run.choices.owners = {owners_there.data(), at.window.ref()};
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    const patch_columns source{addresses_there.data(), {nullptr, to.rows.data()}, {}};
    TMAP_ASSERT_OK(encode_batch(*base, source, to.maps.data(), tensors(), run));
    EXPECT_EQ(header.download()[0].bad_count, 0u);
  }

  tile_request request(std::uint32_t rank, bool loads, bool adds) const {
    const maps_of_writer &stored = memory_[rank]->stored, &loaded = memory_[rank]->loaded;
    constexpr std::chrono::nanoseconds time = patience;
    return {stored.maps.data(),
            stored.rows.data(),
            loads ? loaded.maps.data() : nullptr,
            loaded.rows.data(),
            0,
            tensors(),
            adds,
            static_cast<std::uint64_t>(time.count())};
  }
  void run(bool loads, bool adds) const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const rank_on_gpu& at = on(rank);
      const tile_memory_of_rank& memory = *memory_[rank];
      TMAP_ASSERT_CUDA(launch_tiles(at.window.ref(), request(rank, loads, adds), memory.counts.data(),
                                    memory.out.data(), at.stream->get()));
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const rank_on_gpu& at = on(rank);
      TMAP_ASSERT_OK(barrier_async(at.window, at.stream->ref(), patience));
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      expect_ok(rank);
      for (const operation_counts& each : memory_[rank]->counts.download()) {
        EXPECT_EQ(each.rounds, 1u);
        EXPECT_EQ(each.ended, peer_status::ok);
      }
    }
  }

  /// Sets the elements of a tensor in the words of a window after the signals.
  template <class Value>
  static void set_tensor(words& all, std::uint64_t place, std::uint32_t rows, const Value& value) {
    for (std::uint32_t row = 0; row < rows; ++row) {
      for (std::uint32_t column = 0; column < tensor_columns; ++column) {
        const float element = value(row, column);
        std::memcpy(&all[(place - tensors_at) / 4 + row * pitch_words + column], &element, sizeof(element));
      }
    }
  }
  static words untouched() { return words((tile_window_bytes - tensors_at) / 4, canary); }
  void expect_window(std::uint32_t rank, const words& expected) const {
    const words found = download(rank, tensors_at, expected.size());
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != expected[i] && wrong++ == 0)
        ADD_FAILURE() << "rank " << rank << ": the first wrong word is " << i;
    }
    EXPECT_EQ(wrong, 0u);
  }
  /// Returns the tiles that a rank loads of the tensors of `writer`. Elements outside are zeros.
  std::vector<float> tiles_of(std::uint32_t writer) const {
    std::uint32_t poison = 0xa5a5a5a5;
    float unwritten;
    std::memcpy(&unwritten, &poison, sizeof(unwritten));
    std::vector<float> all(std::uint64_t{tensors()} * most_tiles * tile_elements, unwritten);
    for (std::uint32_t i = 0; i < tensors(); ++i) {
      const std::uint32_t rows = rows_of(i / groups, writer, i % groups);
      for (std::uint32_t row = 0; row < (rows + tile_rows - 1) / tile_rows * tile_rows; ++row) {
        for (std::uint32_t column = 0; column < tile_columns; ++column) {
          const bool is_inside = row < rows && column < tensor_columns;
          all[(i * most_tiles * tile_rows + row) * tile_columns + column] =
              is_inside ? tile_value(writer, i, row, column) : 0;
        }
      }
    }
    return all;
  }

  std::vector<std::unique_ptr<tile_memory_of_rank>> memory_;
};

/// Each rank stores to tensors on all ranks. The rank before it loads them from there.
TEST_P(tiles_on_gpus, tiles_are_stored_to_and_loaded_from_tensors_on_all_ranks) {
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    encode(rank, rank, memory_[rank]->stored);
    encode(rank, (rank + 1) % count(), memory_[rank]->loaded);
  }
  run(true, false);
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    words expected = untouched();
    for (std::uint32_t writer = 0; writer < count(); ++writer) {
      for (std::uint32_t group = 0; group < groups; ++group) {
        set_tensor(expected, place_of(writer, group), rows_of(rank, writer, group),
                   [&](auto row, auto column) { return tile_value(writer, rank * groups + group, row, column); });
      }
    }
    expect_window(rank, expected);
    static_cast<void>(on(rank));
    const std::vector<float> found = memory_[rank]->out.download(), wanted = tiles_of((rank + 1) % count());
    EXPECT_EQ(std::memcmp(found.data(), wanted.data(), 4 * wanted.size()), 0) << "wrong tiles at rank " << rank;
  }
}

/// All ranks add whole numbers into the same tensors, so sums are exact in any order.
TEST_P(tiles_on_gpus, all_ranks_add_tiles_into_tensors_on_all_ranks) {
  const auto before = [](std::uint32_t row, std::uint32_t column) { return static_cast<float>(row + 2 * column); };
  std::vector<words> expected(count(), untouched());
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    encode(rank, 0, memory_[rank]->stored);
    for (std::uint32_t group = 0; group < groups; ++group) {
      set_tensor(expected[rank], place_of(0, group), rows_of(rank, 0, group), before);
    }
    upload(rank, tensors_at, expected[rank]);
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(on(rank).stream->get()));
  }
  run(false, true);
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    for (std::uint32_t group = 0; group < groups; ++group) {
      const auto sum = [&](std::uint32_t row, std::uint32_t column) {
        float all = before(row, column);
        for (std::uint32_t writer = 0; writer < count(); ++writer) {
          all += tile_value(writer, rank * groups + group, row, column);
        }
        return all;
      };
      set_tensor(expected[rank], place_of(0, group), rows_of(rank, 0, group), sum);
    }
    expect_window(rank, expected[rank]);
  }
}

INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, tiles_on_gpus, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(four_virtual_ranks, tiles_on_gpus, ::testing::Values(virtual_ranks(4)));
INSTANTIATE_TEST_SUITE_P(two_gpus, tiles_on_gpus, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_ranks_over_nccl, tiles_on_gpus, ::testing::Values(ranks_over_nccl({0, 0})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, tiles_on_gpus, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing::operations
