// SPDX-License-Identifier: Apache-2.0
#include "pool/ledger_model.hpp"

#include "support/scaled.hpp"

// Compares the ledger with its model over random sequences of operations.

namespace tmap::testing {
namespace {

/// Takes slots as the pool does.
void take(model& m, std::mt19937_64& random) {
  const std::uint64_t count = 1 + random() % (random() % 4 == 0 ? slab_capacity : 6);
  const stream_id stream = random() % stream_count;
  m.check_finds(count, stream);
  auto window = m.ledger.find_free(count);
  if (!window) window = m.ledger.find_own(count, stream, all);
  if (!window) window = m.ledger.find_returned(count);
  if (!window) return;
  m.check_marks(*window, stream);
  m.lend(*window);
}

void step(model& m, std::mt19937_64& random) {
  switch (random() % 8) {
    case 0:
    case 1: return take(m, random);
    case 2:
      if (holding* const slots = m.pick([](const model_lease& lease) { return lease.lent; }, random)) {
        m.end(slots, random() % (stream_count + 1));
      }
      return;
    case 3:
    case 4:
      if (holding* const slots = m.pick([](const model_lease& lease) { return lease.unmarked != 0; }, random)) {
        const stream_id stream = slots->marks.size();
        if (random() % 4 == 0 || slots->marks.size() >= stream_count) return m.pass(slots);
        const bool is_new = std::none_of(slots->marks.begin(), slots->marks.end(),
                                         [&](const holding::mark_place& place) { return place.stream == stream; });
        if (is_new) m.mark(slots, stream);
      }
      return;
    case 5:
      if (holding* const slots = m.pick([](const model_lease& lease) { return lease.lent; }, random)) m.pin(slots);
      return;
    case 6:
      if (holding* const slots = m.pick([](const model_lease& lease) { return lease.graphs != 0; }, random)) {
        m.unpin(slots);
      }
      return;
    default: return m.complete(random() % stream_count);
  }
}

void give_everything_back(model& m, std::mt19937_64& random) {
  const auto any = [](const model_lease& lease) { return lease.lent; };
  const auto pinned = [](const model_lease& lease) { return lease.graphs != 0; };
  const auto unmarked = [](const model_lease& lease) { return lease.unmarked != 0; };
  while (holding* const slots = m.pick(any, random)) m.end(slots, 0);
  while (holding* const slots = m.pick(pinned, random)) m.unpin(slots);
  while (holding* const slots = m.pick(unmarked, random)) m.pass(slots);
  for (stream_id stream = 0; stream < stream_count; ++stream) {
    while (m.ledger.oldest_mark(stream)) m.complete(stream);
  }
}

TEST(ledger_model, random_operations_agree_with_each_slot_counted_alone) {
  const std::uint64_t rounds = scaled(400);
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random{seed};
    model m;
    for (int operation = 0; operation < 300; ++operation) {
      step(m, random);
      m.check_counts();
      if (::testing::Test::HasFatalFailure()) return;
    }
    give_everything_back(m, random);
    m.check_counts();
    for (int slab = 0; slab < 2; ++slab) {
      const auto whole = m.ledger.find_free(slab_capacity);
      ASSERT_TRUE(whole.has_value()) << "everything is in one piece again";
      m.lend(*whole);
    }
    ASSERT_FALSE(m.ledger.find_free(1).has_value());
  }
}

}  // namespace
}  // namespace tmap::testing
