// SPDX-License-Identifier: Apache-2.0
// Tests the stage ring in every order in which its threads, copies and stores can run, with small
// rings and every mixture of routes. It runs the ring's own code over stand-ins for the headers
// that it includes (ring_model/stand_in).
#include <tmap/device/stage_ring.cuh>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "device/ring_model/explorer.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint32_t most_stages = 4;

/// Selects how a tile is filled:
///   E, e  by the copy engine, by the first or the last filler; the others pass
///   L     by LDGSTS, all
///   P     by ordinary stores, all
///   B     by the copy engine, all, a part each
///   M     the first by the copy engine, the last by LDGSTS; those between pass
struct ring_case {
  std::string tiles;
  std::uint32_t stages;
  std::uint32_t releases{1};
  bool by_storer{false};  ///< the consumer stores the stages by the copy engine
};

/// Names the route by which a filler brings its part of a tile.
enum class part { nothing, engine, ldgsts, plain };

part part_of(char tile, std::uint32_t filler, std::uint32_t fillers) {
  const bool is_first = filler == 0;
  const bool is_last = filler + 1 == fillers;
  switch (tile) {
    case 'E': return is_first ? part::engine : part::nothing;
    case 'e': return is_last ? part::engine : part::nothing;
    case 'L': return part::ldgsts;
    case 'P': return part::plain;
    case 'B': return part::engine;
    default: return is_first ? part::engine : is_last ? part::ldgsts : part::nothing;
  }
}

/// Names the ring's own producer. The types that follow are producers with a fault.
template <std::uint32_t Fillers>
using producer = device::ring_producer<most_stages, Fillers>;

/// Seeds the fault: the announcing thread arrives for all, and the arrivals of those that pass are
/// not counted.
template <std::uint32_t Fillers>
class producer_of_uncounted_passes {
 public:
  producer_of_uncounted_passes(device::ring_barriers<most_stages, Fillers>& barriers, std::uint32_t stages)
      : barriers_(barriers), position_(stages) {}

  std::uint32_t acquire_stage() {
    barriers_.empty[position_.stage()].wait(position_.parity() ^ 1);
    return position_.stage();
  }
  device::tile_barrier& announce(std::uint32_t bytes) {
    device::tile_barrier& full = barriers_.full[position_.stage()];
    for (std::uint32_t other = 1; other < Fillers; ++other) full.arrive();
    full.arrive_expect(bytes);
    position_.advance();
    return full;
  }
  void pass() { position_.advance(); }
  void publish() {
    barriers_.full[position_.stage()].arrive();
    position_.advance();
  }
  void publish_after_copies() {
    device::arrive_after_copies(barriers_.full[position_.stage()]);
    position_.advance();
  }

 private:
  device::ring_barriers<most_stages, Fillers>& barriers_;
  device::ring_position position_;
};

/// Publishes LDGSTS copies before they have landed.
template <std::uint32_t Fillers>
struct producer_that_publishes_early : producer<Fillers> {
  using producer<Fillers>::producer;
  void publish_after_copies() { this->publish(); }
};

/// Fills stages even if they are not empty.
template <std::uint32_t Fillers>
class producer_that_does_not_wait : public producer<Fillers> {
 public:
  producer_that_does_not_wait(device::ring_barriers<most_stages, Fillers>& barriers, std::uint32_t stages)
      : producer<Fillers>(barriers, stages), stages_(stages) {}
  std::uint32_t acquire_stage() { return next_++ % stages_; }

 private:
  std::uint32_t stages_;
  std::uint32_t next_{0};
};

template <std::uint32_t Fillers, class Producer>
void fill_tile(Producer& filling, part brought, std::uint32_t tile) {
  const std::uint32_t stage = filling.acquire_stage();
  const ring_recording& recording = *now_recording;
  switch (brought) {
    case part::nothing:
      if constexpr (Fillers > 1) filling.pass();
      return;
    case part::engine: return recording.note({act::load, filling.announce(1).number(), 1, stage, tile});
    case part::ldgsts: recording.note({act::copy, 0, 0, stage, tile}); return filling.publish_after_copies();
    case part::plain: recording.note({act::write, 0, 0, stage, tile}); return filling.publish();
  }
}

template <std::uint32_t Fillers>
void read_tiles(device::ring_barriers<most_stages, Fillers>& barriers, const ring_case& how, bool by_warp) {
  device::ring_consumer<most_stages, Fillers> consumer(barriers, how.stages);
  for (std::uint32_t tile = 0; tile < how.tiles.size(); ++tile) {
    const std::uint32_t stage = consumer.wait_full();
    now_recording->note({act::read, 0, 0, stage, tile});
    now_recording->note({act::end_read, 0, 0, stage, tile});
    by_warp ? consumer.release_warp() : consumer.release();
  }
}

template <std::uint32_t Fillers>
void store_tiles(device::ring_barriers<most_stages, Fillers>& barriers, const ring_case& how) {
  device::ring_storer<most_stages, Fillers> storer(barriers, how.stages);
  for (std::uint32_t tile = 0; tile < how.tiles.size(); ++tile) {
    now_recording->note({act::store, 0, 0, storer.wait_full(), tile});
    storer.store_issued();
  }
  storer.drain();
}

template <std::uint32_t Fillers, template <std::uint32_t> class Producer>
exploration explored(const ring_case& how) {
  ring_recording recording;
  now_recording = &recording;
  ring_program program;
  device::ring_barriers<most_stages, Fillers> barriers;
  barriers.init(how.stages, how.releases);
  program.barrier_counts = recording.barrier_counts;
  program.parts.resize(how.tiles.size());
  program.threads.resize(Fillers + how.releases);
  for (std::uint32_t filler = 0; filler < Fillers; ++filler) {
    recording.thread = &program.threads[filler];
    Producer<Fillers> filling(barriers, how.stages);
    for (std::uint32_t tile = 0; tile < how.tiles.size(); ++tile) {
      const part brought = part_of(how.tiles[tile], filler, Fillers);
      if (brought != part::nothing) program.parts[tile] |= 1u << filler;
      fill_tile<Fillers>(filling, brought, tile);
    }
  }
  for (std::uint32_t reader = 0; reader < how.releases; ++reader) {
    recording.thread = &program.threads[Fillers + reader];
    if (how.by_storer) {
      store_tiles(barriers, how);
    } else {
      read_tiles(barriers, how, reader == 1);
    }
  }
  now_recording = nullptr;
  return explore(program);
}

std::string text_of(const ring_case& how) {
  return how.tiles + " through " + std::to_string(how.stages) + " stages to " + std::to_string(how.releases) +
         (how.by_storer ? " storers" : " readers");
}

template <std::uint32_t Fillers, template <std::uint32_t> class Producer = producer>
std::string fault_of(const ring_case& how) {
  return explored<Fillers, Producer>(how).fault;
}

/// Returns every word of `length` letters.
std::vector<std::string> all_words(const std::string& letters, std::uint32_t length) {
  std::vector<std::string> words{""};
  for (std::uint32_t i = 0; i < length; ++i) {
    std::vector<std::string> longer;
    for (const std::string& word : words) {
      for (const char letter : letters) longer.push_back(word + letter);
    }
    words = std::move(longer);
  }
  return words;
}

/// Returns the routes in turn, starting with each of them, for more than one round of the ring.
std::vector<std::string> routes_in_turn(std::uint32_t length) {
  const std::string letters = "ELePMB";
  std::vector<std::string> words;
  for (std::size_t first = 0; first < letters.size(); ++first) {
    std::string word;
    for (std::uint32_t i = 0; i < length; ++i) word += letters[(first + i) % letters.size()];
    words.push_back(word);
  }
  return words;
}

template <std::uint32_t Fillers>
void expect_whole_tiles(const ring_case& how) {
  const exploration found = explored<Fillers, producer>(how);
  EXPECT_EQ(found.fault, "") << Fillers << " fillers, " << text_of(how);
  EXPECT_GT(found.states, how.tiles.size());
}

TEST(ring_model, every_mixture_of_routes) {
  for (std::uint32_t stages = 1; stages <= 3; ++stages) {  // four tiles go round three
    for (const std::string& tiles : all_words("EeLPMB", 4)) expect_whole_tiles<2>({tiles, stages});
  }
}

TEST(ring_model, one_to_four_stages) {
  for (std::uint32_t stages = 1; stages <= most_stages; ++stages) {
    for (const std::string& tiles : routes_in_turn(stages + 3)) {
      expect_whole_tiles<2>({tiles, stages});
      expect_whole_tiles<2>({tiles, stages, 2});
    }
  }
}

TEST(ring_model, three_fillers) {
  for (std::uint32_t stages = 1; stages <= most_stages; ++stages) {
    for (const std::string& tiles : routes_in_turn(stages + 2)) expect_whole_tiles<3>({tiles, stages});
  }
}

TEST(ring_model, one_filler) {
  for (std::uint32_t stages = 1; stages <= most_stages; ++stages) {
    expect_whole_tiles<1>({"EEEEEEEEE", stages});
    expect_whole_tiles<1>({"EPEPPEEPE", stages, 2});
  }
}

TEST(ring_model, stages_that_are_stored) {
  for (std::uint32_t stages = 2; stages <= most_stages; ++stages) {
    for (const std::string& tiles : routes_in_turn(stages + 3)) {
      expect_whole_tiles<1>({std::string(tiles.size(), 'E'), stages, 1, true});
      expect_whole_tiles<2>({tiles, stages, 1, true});
    }
  }
}

// The model must report each of these seeded faults. A model that reports nothing proves nothing.

bool begins_with(const std::string& text, const std::string& begin) {
  return text.compare(0, begin.size(), begin) == 0;
}

TEST(ring_model, passes_that_nobody_counts_hang) {
  const auto hangs = [](const char* tiles, std::uint32_t stages) {
    return begins_with(fault_of<2, producer_of_uncounted_passes>({tiles, stages}), "hangs");
  };
  EXPECT_TRUE(hangs("EEL", 1));
  EXPECT_TRUE(hangs("EEL", 2));
  EXPECT_TRUE(hangs("EEEL", 4)) << "no more tiles than stages";
  EXPECT_TRUE(hangs("EEEE", 3)) << "all by the copy engine";
  EXPECT_FALSE(hangs("LPLPLPL", 2)) << "nobody passes";
}

TEST(ring_model, copies_published_before_they_land_are_seen) {
  const std::string fault = fault_of<2, producer_that_publishes_early>({"LL", 2});
  EXPECT_TRUE(begins_with(fault, "reads a stage that lacks a part")) << fault;
}

TEST(ring_model, a_filler_that_does_not_wait_is_seen) {
  const std::string fault = fault_of<1, producer_that_does_not_wait>({"PPPP", 2});
  EXPECT_TRUE(begins_with(fault, "fills a stage that is still read")) << fault;
}

TEST(ring_model, a_storer_with_one_stage_hangs) {
  const std::string fault = fault_of<1>({"EE", 1, 1, true});
  EXPECT_TRUE(begins_with(fault, "hangs")) << fault;
}

}  // namespace
}  // namespace tmap::testing
