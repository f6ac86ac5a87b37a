// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ranks/scheduler.hpp"

#include <algorithm>
#include <utility>

#include "lib/simulator/ranks/view.hpp"

namespace tmap::ranks {
namespace {

/// No correct program of the tests takes as many. One that does runs in circles.
constexpr std::uint32_t most_steps = 1'000'000;

}  // namespace

std::uint32_t scheduler::add(std::uint32_t rank, std::function<void()> body) {
  threads_.push_back(std::make_unique<runner>());
  threads_.back()->number = static_cast<std::uint32_t>(threads_.size() - 1);
  threads_.back()->rank = rank;
  threads_.back()->body = std::move(body);
  return threads_.back()->number;
}

ending scheduler::run(choices& by, const std::function<std::uint64_t()>& memory_hash,
                      std::unordered_set<std::uint64_t>* seen) {
  choices_ = &by;
  memory_hash_ = &memory_hash;
  seen_ = seen;
  std::fill(steps_.begin(), steps_.end(), 0);
  now_ = 0;
  early_left_ = early_timeouts;
  failure_.clear();
  is_stopping_ = is_cut_ = has_died_ = false;
  is_starting_ = true;
  for (const auto& each : threads_) start(*each);
  is_starting_ = false;
  if (runner* const first = choose()) main_.switch_to(first->stack);
  is_stopping_ = true;
  for (const auto& each : threads_) {
    if (!each->is_finished) main_.switch_to(each->stack);
  }
  if (!failure_.empty()) return ending::failed;
  return is_cut_ ? ending::cut : ending::complete;
}

/// Runs a thread up to its first step.
void scheduler::start(runner& each) {
  each.ready = {};
  each.deadline = never;
  each.history = 0;
  each.is_late = each.is_finished = each.is_dead = false;
  each.stack.start([this, &each] {
    try {
      each.body();
    } catch (const stopped&) {
    }
    each.is_finished = true;
    runner* const next = is_starting_ || is_stopping_ ? nullptr : choose();
    each.stack.leave_for(next != nullptr ? next->stack : main_);
  });
  main_.switch_to(each.stack);
}

bool scheduler::step(std::uint32_t number, std::function<bool()> ready, std::uint64_t deadline) {
  runner& me = *threads_[number];
  me.ready = std::move(ready);
  me.deadline = deadline;
  runner* const next = is_starting_ ? nullptr : choose();
  if (next != &me) me.stack.switch_to(next != nullptr ? next->stack : main_);
  if (is_stopping_) throw stopped{};
  me.ready = {};
  me.deadline = never;
  remember(number, me.is_late ? 1 : 0);
  return !me.is_late;
}

/// Returns the thread that goes on; none if the execution is over.
scheduler::runner* scheduler::choose() {
  if (!failure_.empty()) return nullptr;
  if (seen_ != nullptr && choices_->is_new() && !seen_->insert(hash()).second) {
    is_cut_ = true;
    return nullptr;
  }
  for (;;) {
    list_options();
    if (options_.empty()) {
      if (ends()) return nullptr;
      continue;
    }
    const option chosen = draw();
    if (kills(*chosen.next)) continue;
    if (steps_[chosen.next->rank] > most_steps) failure_ = "the rank runs in circles";
    if (!failure_.empty()) return nullptr;
    take(chosen);
    return chosen.next;
  }
}

void scheduler::list_options() {
  options_.clear();
  for (const auto& each : threads_) {
    if (each->is_finished || each->is_dead) continue;
    if (!each->ready || each->ready()) options_.push_back({each.get(), false});
    if (each->deadline <= now_ || (early_left_ > 0 && each->deadline != never)) options_.push_back({each.get(), true});
  }
}

scheduler::option scheduler::draw() {
  numbers_.clear();
  for (const option& each : options_) numbers_.push_back(each.next->number);
  return options_[choices_->pick_thread(numbers_)];
}

void scheduler::take(option chosen) {
  runner& next = *chosen.next;
  next.is_late = chosen.is_late;
  if (!chosen.is_late || next.deadline <= now_) return;
  --early_left_;
  now_ = next.deadline;
}

/// Ends the rank of `next` if its time has come.
bool scheduler::kills(const runner& next) {
  const std::uint32_t step = steps_[next.rank]++;
  if (!dies || dies->rank != next.rank || dies->step != step) return false;
  has_died_ = true;
  for (const auto& each : threads_) {
    if (each->rank == next.rank) each->is_dead = true;
  }
  return true;
}

/// Returns whether all is over when nobody can go on.
bool scheduler::ends() {
  if (advance_clock()) return false;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i]->is_finished || threads_[i]->is_dead) continue;
    failure_ = "thread " + std::to_string(i) + " waits for ever";
  }
  return true;
}

bool scheduler::advance_clock() {
  std::uint64_t next = never;
  for (const auto& each : threads_) {
    if (!each->is_finished && !each->is_dead) next = std::min(next, each->deadline);
  }
  if (next == never) return false;
  now_ = next;
  return true;
}

std::uint64_t scheduler::hash() const {
  std::uint64_t hash = mix(now_, early_left_);
  for (const std::uint32_t steps : steps_) hash = mix(hash, steps);
  for (const auto& each : threads_) {
    hash = mix(hash, each->history);
    hash = mix(hash, (each->is_finished ? 1 : 0) | (each->is_dead ? 2 : 0));
  }
  return mix(hash, (*memory_hash_)());
}

void scheduler::remember(std::uint32_t me, std::uint64_t number) {
  threads_[me]->history = mix(threads_[me]->history, number);
}

void scheduler::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  throw stopped{};
}

}  // namespace tmap::ranks
