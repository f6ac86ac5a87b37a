// SPDX-License-Identifier: Apache-2.0
#pragma once

// One case of ragged_bench: an operation on a batch. The benchmark times it on a stream and in a
// graph, by the chosen route and by each allowed route alone, and compares it with its peers.
// Figures are GB/s and count the bytes read and the bytes written.

#include <tmap/ragged.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/common/table.hpp"
#include "apps/bench/ragged/operation_parts.hpp"
#include "apps/support/device_array.hpp"
#include "apps/support/timing.hpp"

namespace tmap::apps::bench {

/// A call takes less than a millisecond. The figures are medians of a few measurements; a graph has
/// five calls.
struct measured {
  double stream;
  double graph;
};

/// Selects the columns of a table.
enum class columns_wanted : std::uint32_t {
  rates,
  rates_by_route,
  parts,  ///< times of the parts; without peers
};

class ragged_meter {
 public:
  explicit ragged_meter(columns_wanted wanted) : wanted_(wanted) {}

  template <class Enqueue>
  measured gigabytes(std::uint64_t bytes_moved, const Enqueue& enqueue) const {
    const double kilobytes = static_cast<double>(bytes_moved) * 1e-3;
    return {stream_gigabytes(bytes_moved, enqueue), kilobytes / clock_.graph_microseconds(enqueue, 5, 5)};
  }
  template <class Enqueue>
  double stream_gigabytes(std::uint64_t bytes_moved, const Enqueue& enqueue) const {
    return static_cast<double>(bytes_moved) * 1e-3 / clock_.stream_microseconds(enqueue, 9);
  }
  /// Measures `cudaMemcpyAsync` of `bytes` bytes on a stream and in a graph, and returns the faster
  /// rate. In a graph, 1 GiB ran at two thirds of the rate of 256 MiB.
  double copy_rate(std::uint64_t bytes) const {
    const device_array<unsigned char> from(bytes);
    const device_array<unsigned char> to(bytes);
    const measured rate = gigabytes(2 * bytes, [&](cudaStream_t stream) {
      require(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, stream));
    });
    return std::max(rate.stream, rate.graph);
  }
  template <class Enqueue>
  operation_parts parts(const Enqueue& enqueue) const {
    return time_parts(clock_, enqueue);
  }
  columns_wanted wanted() const { return wanted_; }

 private:
  timer clock_;
  columns_wanted wanted_;
};

/// An operation with all arguments bound except the run.
using ragged_call = std::function<result<void>(const ragged::run&)>;

struct ragged_case {
  std::string name;
  std::uint64_t count;
  std::uint32_t rank;
  std::uint64_t bytes_moved;
  ragged_call call;
  std::function<std::uint64_t()> differences;  ///< returns the number of wrong elements; may be empty
  std::function<void()> forget;                ///< makes the destination wrong before each check
};

/// Holds the rate that a case must reach, as text and as a number.
struct ragged_goal {
  std::string text;
  double gigabytes;
};

/// Binds the operation to a workspace, checks its result, and returns what `use` returns.
template <class Use>
auto checked(const ragged_case& one, route_set allowed, const Use& use) {
  const std::uint64_t bytes = value_of(ragged::workspace_bytes(one.count, one.rank));
  const device_array<unsigned char> memory(bytes);
  const auto run_on = [&](cudaStream_t stream) {
    const on_stream where{cuda::stream_ref{stream}, {memory.get(), bytes}};
    return one.call({.where = where, .choices = {.policy = {}, .allowed = allowed}});
  };
  if (one.forget) one.forget();
  require(run_on(cudaStream_t{}));
  require(cudaDeviceSynchronize());
  if (one.differences) require(one.differences() == 0);
  return use([&](cudaStream_t stream) { require(run_on(stream)); });
}

/// A table of cases with columns for the chosen route, each route, the peer, the goal and the
/// verdict.
class ragged_table {
 public:
  ragged_table(const std::string& title, const std::string& peer, const ragged_meter& meter)
      : meter_{meter}, table_(title, columns(peer, meter.wanted())) {}

  void add(const ragged_case& one, const std::optional<double>& peer, const ragged_goal& goal) {
    if (meter_.wanted() == columns_wanted::parts) return add_parts(one);
    const measured ours = run(one, all_routes);
    std::vector<std::string> cells{one.name, text(ours.stream, 0), text(ours.graph, 0)};
    if (meter_.wanted() == columns_wanted::rates_by_route) {
      for (std::uint32_t r = 0; r < route_count; ++r) {
        cells.push_back(text(run(one, route_bit(static_cast<route>(r)) | route_bit(route::plain)).graph, 0));
      }
    }
    cells.push_back(peer ? text(*peer, 0) : "-");
    cells.push_back(goal.text);
    cells.push_back(goal.gigabytes == 0 ? "-" : ours.graph >= goal.gigabytes ? "met" : "missed");
    table_.add(std::move(cells));
  }
  void print() const { table_.print(); }

  /// Checks the result once and then times the case.
  measured run(const ragged_case& one, route_set allowed) const {
    return checked(one, allowed, [&](const auto& enqueue) { return meter_.gigabytes(one.bytes_moved, enqueue); });
  }

 private:
  void add_parts(const ragged_case& one) {
    const operation_parts parts = checked(one, all_routes, [&](const auto& enqueue) { return meter_.parts(enqueue); });
    const double kilobytes = static_cast<double>(one.bytes_moved) * 1e-3;
    table_.add({one.name, count_text(one.count), text(kilobytes * 1e-3, 0), text(parts.whole, 1),
                text(parts.planning, 1), std::to_string(parts.planning_launches), text(parts.work, 1),
                signed_text(parts.whole - parts.work, 1), text(kilobytes / parts.whole, 0),
                text(kilobytes / parts.work, 0)});
  }

  static std::vector<std::string> columns(const std::string& peer, columns_wanted wanted) {
    if (wanted == columns_wanted::parts) {
      return {"case",     "tensors",        "MB moved",     "whole, us",   "planning alone, us",
              "launches", "work alone, us", "whole - work", "whole, GB/s", "work alone, GB/s"};
    }
    std::vector<std::string> names{"case", "stream", "graph"};
    if (wanted == columns_wanted::rates_by_route) {
      for (std::uint32_t r = 0; r < route_count; ++r) names.emplace_back(name(static_cast<route>(r)));
    }
    names.insert(names.end(), {peer, "goal", "verdict"});
    return names;
  }

  const ragged_meter& meter_;
  table table_;
};

void print_copy(const ragged_meter& meter);
void print_pad(const ragged_meter& meter);
void print_transpose(const ragged_meter& meter);
void print_vectors(const ragged_meter& meter);
void print_quantize(const ragged_meter& meter);
/// Writes GB/s for each size of a tensor to this file, as JSON.
void write_curve(const ragged_meter& meter, const std::string& path);

}  // namespace tmap::apps::bench
