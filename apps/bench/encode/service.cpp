// SPDX-License-Identifier: Apache-2.0
#include <tmap/map_service.hpp>

#include <barrier>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "apps/bench/common/table.hpp"
#include "apps/bench/encode/batches.hpp"
#include "apps/bench/encode/tables.hpp"
#include "apps/support/progress.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint64_t service_sizes[] = {1, 256, 4096};
constexpr std::uint32_t thread_counts[] = {1, 4};
constexpr std::uint64_t one_changed_of = 10;

/// Makes the calls of one thread, with its own stream and slots.
class caller {
 public:
  caller(map_service& service, std::uint64_t count)
      : service_{service},
        bare_{few, make_patches(count)},
        changed_{make_changes(count)},
        kept_{encode(clock_.stream())} {
    clock_.drain();
  }

  const timer& clock() const { return clock_; }

  void encode_bare(cudaStream_t stream) const { bare_.encode(stream); }

  void encode_and_release(cudaStream_t stream) {
    map_batch made = encode(stream);
    require(made.release());
  }

  void update_and_release(cudaStream_t stream) {
    map_batch made =
        value_of(service_.update(kept_, {changed_.get(), changed_.size()}, bare_.base(), bare_.source(), {stream}));
    require(made.release());
  }

 private:
  static std::vector<std::uint32_t> make_changes(std::uint64_t count) {
    std::vector<std::uint32_t> changes;
    for (std::uint64_t i = 0; i < count; i += one_changed_of) changes.push_back(static_cast<std::uint32_t>(i));
    return changes;
  }

  map_batch encode(cudaStream_t stream) {
    return value_of(service_.encode(bare_.base(), bare_.source(), bare_.count(), {stream}));
  }

  timer clock_;
  map_service& service_;
  batch bare_;
  device_array<std::uint32_t> changed_;
  map_batch kept_;
};

/// Returns the median time of a call that this many threads make at the same time.
double median_call(map_service& service, std::uint64_t count, std::uint32_t threads,
                   const std::function<void(caller&, cudaStream_t)>& call) {
  std::vector<std::vector<double>> times(threads);
  std::barrier ready(static_cast<std::ptrdiff_t>(threads));
  const auto run = [&](std::uint32_t thread) {
    caller c(service, count);
    ready.arrive_and_wait();
    times[thread] = c.clock().host_times([&](cudaStream_t stream) { call(c, stream); });
    ready.arrive_and_wait();
  };
  {
    std::vector<std::jthread> running;
    for (std::uint32_t thread = 0; thread < threads; ++thread) running.emplace_back(run, thread);
  }
  std::vector<double> all;
  for (const std::vector<double>& some : times) all.insert(all.end(), some.begin(), some.end());
  return median(all);
}

}  // namespace

void print_service(const timer&) {
  map_service service = value_of(map_service::create({.capacity = std::uint64_t{1} << 20}));
  table t("The service: microseconds of a call on the host, which enqueues; batches are judged, patches few.",
          {"threads", "maps", "encode_batch alone", "encode and release", "update of 10 % and release",
           "the service adds"});
  {
    progress bar{"service", std::size(thread_counts) * std::size(service_sizes)};
    for (const std::uint32_t threads : thread_counts) {
      for (const std::uint64_t count : service_sizes) {
        const double bare = median_call(service, count, threads, &caller::encode_bare);
        const double encode = median_call(service, count, threads, &caller::encode_and_release);
        const double update = median_call(service, count, threads, &caller::update_and_release);
        t.add({std::to_string(threads), count_text(count), text(bare), text(encode), text(update),
               signed_text(encode - bare)});
        bar.advance(1);
      }
    }
  }
  t.print();
}

}  // namespace tmap::apps::bench
