// SPDX-License-Identifier: Apache-2.0
// Measures groups of two GPUs against the ceilings of the same run: the copy engine, and NCCL if it
// is there. Checks bytes before it times anything. Prints Markdown. All times are medians.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/common/run_tables.hpp"
#include "apps/bench/common/table.hpp"
#include "apps/bench/peer/nccl_calls.hpp"
#include "apps/bench/peer/peer_kernels.hpp"
#include "apps/bench/peer/two_ranks.hpp"
#include "apps/support/device.hpp"
#include "apps/support/require.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;
// Places in a window: counts, results and signals, then rows that are sent, then rows that come.
constexpr std::uint64_t splits_at = 0, out_splits_at = 4096, result_at = 8192, signal_at = 12288;
constexpr std::uint64_t chunk_signals_at = 16384, data_at = mebibyte;

struct options {
  std::uint64_t mebibytes{256};
  bool on_one_gpu{};
};

/// Holds what all tables measure with.
struct meter {
  const options& chosen;
  const two_ranks& ranks;
  const nccl_calls* nccl;  ///< null: it is missing

  std::uint64_t bytes() const { return chosen.mebibytes * mebibyte; }
  std::uint64_t target() const { return data_at + bytes(); }
};

std::string verdict(const meter& m, bool holds) {
  if (m.ranks.are_virtual()) return "-";  // no link was measured
  return holds ? "met" : "missed";
}

double gigabytes_per_second(std::uint64_t bytes, double microseconds) {
  return static_cast<double>(bytes) / microseconds / 1000;
}

// Bandwidth.

move_request request_of(const meter& m, movement kind, std::uint32_t blocks, bool raises) {
  move_request made;
  made.kind = kind;
  made.peer = 1;
  made.from = data_at;
  made.to = m.target();
  made.bytes = m.bytes();
  made.blocks = blocks;
  made.raises = raises;
  made.signals = chunk_signals_at;
  return made;
}

void move(const meter& m, const move_request& request) {
  m.ranks.use(0);
  require(launch_move(m.ranks.window(0).ref(), request, m.ranks.stream(0)));
}

/// Bytes that differ from piece to piece. As f32 they are small whole numbers.
std::vector<unsigned char> pattern(std::uint64_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191 + i / 4096 % 127);
  std::vector<unsigned char> made(bytes);
  std::memcpy(made.data(), values.data(), bytes);
  return made;
}

/// Moves once and compares what came. Sums begin at zeros, so they are the values.
void check_move(const meter& m, move_request request) {
  request.bytes = std::min<std::uint64_t>(m.bytes(), 32 * mebibyte);
  const std::uint32_t from = request.kind == movement::get ? 1 : 0;
  const std::vector<unsigned char> sent = pattern(request.bytes);
  m.ranks.write(from, request.from, sent.data(), sent.size());
  m.ranks.fill(1 - from, request.to, 0, request.bytes);
  m.ranks.fill(1, request.signals, 0, request.bytes / chunk_bytes * 4);
  move(m, request);
  m.ranks.drain();
  require(m.ranks.read(1 - from, request.to, request.bytes) == sent);
  if (!request.raises) return;
  for (std::uint64_t i = 0; i < request.bytes / chunk_bytes; ++i) {
    require(m.ranks.read(1, request.signals + 4 * i, 4) == std::vector<unsigned char>{1, 0, 0, 0});
  }
}

struct rate {
  double gigabytes;
  std::uint32_t blocks;
};

/// Returns the best rate of kernels with these numbers of blocks.
rate best_rate(const meter& m, movement kind, const std::vector<std::uint32_t>& blocks, bool raises = false) {
  rate best{};
  check_move(m, request_of(m, kind, blocks.front(), raises));
  for (const std::uint32_t each : blocks) {
    const move_request request = request_of(m, kind, each, raises);
    const double found = gigabytes_per_second(m.bytes(), m.ranks.microseconds([&] { move(m, request); }));
    if (found > best.gigabytes) best = {found, each};
  }
  return best;
}

double copy_engine_rate(const meter& m, bool is_get) {
  const two_ranks& ranks = m.ranks;
  const std::uint32_t to = is_get ? 0 : 1;
  return gigabytes_per_second(m.bytes(), ranks.microseconds([&] {
    ranks.use(0);
    require(cudaMemcpyPeerAsync(ranks.at(to, m.target()), ranks.gpu(to), ranks.at(1 - to, data_at), ranks.gpu(1 - to),
                                m.bytes(), ranks.stream(0)));
  }));
}

/// Returns the rate of each rank if both move at once, each to or from the other one.
double rate_of_both(const meter& m, movement kind, std::uint32_t blocks) {
  move_request request = request_of(m, kind, blocks, false);
  return gigabytes_per_second(m.bytes(), m.ranks.microseconds([&] {
    m.ranks.for_each([&](std::uint32_t rank) {
      request.peer = 1 - rank;
      require(launch_move(m.ranks.window(rank).ref(), request, m.ranks.stream(rank)));
    });
  }));
}

double copy_engine_rate_of_both(const meter& m) {
  const two_ranks& ranks = m.ranks;
  return gigabytes_per_second(m.bytes(), ranks.microseconds([&] {
    ranks.for_each([&](std::uint32_t rank) {
      require(cudaMemcpyPeerAsync(ranks.at(1 - rank, m.target()), ranks.gpu(1 - rank), ranks.at(rank, data_at),
                                  ranks.gpu(rank), m.bytes(), ranks.stream(rank)));
    });
  }));
}

void print_both(const meter& m) {
  table t("Both ranks at once, GB/s of each.", {"what", "8 blocks", "16 blocks", "32 blocks", "copy engine, puts"});
  for (const auto& [kind, name] : {std::pair{movement::get, "get"}, std::pair{movement::put, "put"}}) {
    t.add({name, text(rate_of_both(m, kind, 8), 0), text(rate_of_both(m, kind, 16), 0),
           text(rate_of_both(m, kind, 32), 0), text(copy_engine_rate_of_both(m), 0)});
  }
  t.print();
}

void print_bandwidth(const meter& m) {
  table t("1. Rank 0 alone moves " + std::to_string(m.chosen.mebibytes) + " MiB in pieces of 16 KiB, GB/s.",
          {"what", "blocks", "GB/s", "ceiling", "of it", "goal", ""});
  const auto add = [&](const char* what, const rate& found, const char* ceiling, double of, double goal) {
    t.add({what, std::to_string(found.blocks), text(found.gigabytes, 0), std::string{ceiling} + " " + text(of, 0),
           text(found.gigabytes / of), ">= " + text(goal), verdict(m, found.gigabytes >= goal * of)});
  };
  const double put_ceiling = copy_engine_rate(m, false), get_ceiling = copy_engine_rate(m, true);
  const rate put = best_rate(m, movement::put, {8, 16, 32});
  add("get", best_rate(m, movement::get, {4, 8, 16}), "copy engine", get_ceiling, 0.94);
  add("put", put, "copy engine", put_ceiling, 0.90);
  add("put, a signal for each 128 KiB", best_rate(m, movement::put, {8, 16, 32}, true), "put", put.gigabytes, 0.97);
  add("add f32", best_rate(m, movement::add_f32, {8, 16, 32}), "copy engine", put_ceiling, 0.83);
  t.print();
  print_both(m);
}

// Latency.

template <class Launch>
double turn_microseconds(const meter& m, std::uint32_t bytes, const Launch& launch) {
  turns_request request;
  request.bytes = bytes;
  request.turns = 1000;
  request.to = data_at;
  request.signal = signal_at;
  request.result = result_at;
  request.patience = 3'000'000'000;
  std::vector<double> times;
  for (int repeat = 0; repeat < 5; ++repeat) {
    m.ranks.for_each([&](std::uint32_t rank) {
      m.ranks.fill(rank, signal_at, 0, 4);
      m.ranks.fill(rank, result_at, 0, sizeof(turns_result));
    });
    m.ranks.for_each([&](std::uint32_t rank) {
      request.peer = 1 - rank;
      require(launch(m.ranks.window(rank).ref(), request, m.ranks.stream(rank)));
    });
    m.ranks.drain();
    turns_result found{};
    std::memcpy(&found, m.ranks.read(0, result_at, sizeof found).data(), sizeof found);
    require(found.is_done == 1);
    times.push_back(found.nanoseconds / 1000);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void print_latency(const meter& m) {
  table t("2. One way between two ranks, microseconds. Barriers are those of `device::barrier`.",
          {"what", "us", "goal", ""});
  const auto add = [&](const std::string& what, double found, double goal) {
    t.add({what, text(found), "<= " + text(goal), verdict(m, found <= goal)});
  };
  t.add({"signal alone", text(turn_microseconds(m, 0, launch_turns)), "", ""});
  for (const std::uint32_t bytes : {16u, 1024u, 8192u}) {
    add("put of " + std::to_string(bytes) + " B, then a signal", turn_microseconds(m, bytes, launch_turns), 2.0);
  }
  add("barrier of both ranks", turn_microseconds(m, 0, launch_barriers), 1.42);
  t.print();
}

// Exchanges.

struct exchange_size {
  std::uint64_t bytes;
  int calls;
  double goal;  ///< microseconds; for the largest, GB/s each way
};
constexpr exchange_size sizes[]{
    {4096, 50, 4.8}, {mebibyte, 50, 7.6}, {16 * mebibyte, 20, 50}, {128 * mebibyte, 5, 345}};

exchange_problem problem_of(const meter& m, std::uint32_t rank, std::uint64_t bytes) {
  exchange_problem made;
  made.row_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, 8192));
  made.rows = m.ranks.at(rank, data_at);
  made.out = m.ranks.at(rank, m.target());
  made.splits = static_cast<const std::uint32_t*>(m.ranks.at(rank, splits_at));
  made.out_splits = static_cast<std::uint32_t*>(m.ranks.at(rank, out_splits_at));
  made.sent_rows = made.capacity = bytes / made.row_bytes;
  return made;
}

void exchange(const meter& m, std::uint64_t bytes, std::uint32_t blocks, int calls) {
  m.ranks.for_each([&](std::uint32_t rank) {
    const exchange_problem problem = problem_of(m, rank, bytes);
    exchange_run run{cuda::stream_ref{m.ranks.stream(rank)}};
    run.blocks = blocks;
    for (int i = 0; i < calls; ++i) require(exchange_rows_async(m.ranks.window(rank), problem, run));
  });
}

/// Writes counts and rows, exchanges them once and compares what came.
void check_exchange(const meter& m, std::uint64_t bytes) {
  std::vector<unsigned char> sent = pattern(bytes);
  m.ranks.for_each([&](std::uint32_t rank) {
    std::array<std::uint32_t, 2> splits{};
    splits[1 - rank] = static_cast<std::uint32_t>(problem_of(m, rank, bytes).sent_rows);
    m.ranks.write(rank, splits_at, splits.data(), sizeof splits);
    sent[0] = static_cast<unsigned char>(rank);
    m.ranks.write(rank, data_at, sent.data(), bytes);
    m.ranks.fill(rank, m.target(), 0, bytes);
  });
  exchange(m, bytes, 16, 1);
  m.ranks.drain();
  for (std::uint32_t rank = 0; rank < two_ranks::count; ++rank) {
    sent[0] = static_cast<unsigned char>(1 - rank);
    require(m.ranks.read(rank, m.target(), bytes) == sent);
  }
}

/// Returns the microseconds of one call of NCCL, or 0 without NCCL.
template <class Call>
double nccl_microseconds(const meter& m, const exchange_size& size, const Call& call) {
  if (m.nccl == nullptr) return 0;
  const two_ranks& ranks = m.ranks;
  const nccl_calls::addresses from{ranks.at(0, data_at), ranks.at(1, data_at)};
  const nccl_calls::addresses to{ranks.at(0, m.target()), ranks.at(1, m.target())};
  const nccl_calls::streams on{ranks.stream(0), ranks.stream(1)};
  return ranks.microseconds(
             [&] {
               for (int i = 0; i < size.calls; ++i) call(from, to, on);
             },
             5000) /
         size.calls;
}

std::string time_text(const exchange_size& size, double microseconds) {
  if (microseconds == 0) return "-";
  return text(microseconds, 1) + " (" + text(gigabytes_per_second(size.bytes, microseconds), 0) + ")";
}

void print_exchanges(const meter& m) {
  table t("3. Exchange with the other rank, sizes in device memory. Microseconds a call (GB/s each way).",
          {"bytes each way", "8 blocks", "16 blocks", "32 blocks", "NCCL send and recv", "ncclAlltoAll", "goal", ""});
  for (const exchange_size& size : sizes) {
    if (size.bytes > m.bytes()) {
      std::printf("%llu bytes: skipped, the windows are too small\n", static_cast<unsigned long long>(size.bytes));
      continue;
    }
    check_exchange(m, size.bytes);
    std::vector<std::string> cells{count_text(size.bytes)};
    double best = 0;
    for (const std::uint32_t blocks : {8u, 16u, 32u}) {
      const double found =
          m.ranks.microseconds([&] { exchange(m, size.bytes, blocks, size.calls); }, 2000) / size.calls;
      best = best == 0 ? found : std::min(best, found);
      cells.push_back(time_text(size, found));
    }
    cells.push_back(time_text(size, nccl_microseconds(m, size, [&](auto& from, auto& to, auto& on) {
                                m.nccl->send_and_receive(from, to, size.bytes, on);
                              })));
    const bool has_all_to_all = m.nccl != nullptr && m.nccl->has_all_to_all() && 2 * size.bytes <= m.bytes();
    cells.push_back(!has_all_to_all ? "-"
                                    : time_text(size, nccl_microseconds(m, size, [&](auto& from, auto& to, auto& on) {
                                                  m.nccl->all_to_all(from, to, size.bytes, on);
                                                })));
    const bool is_rate = size.goal > 100;
    cells.push_back(is_rate ? ">= " + text(size.goal, 0) + " GB/s" : "<= " + text(size.goal, 1) + " us");
    cells.push_back(verdict(m, is_rate ? gigabytes_per_second(size.bytes, best) >= size.goal : best <= size.goal));
    t.add(std::move(cells));
  }
  t.print();
}

constexpr named_table<meter> tables[]{
    {"bandwidth", &print_bandwidth}, {"latency", &print_latency}, {"exchange", &print_exchanges}};

void measure(const table_program& program, const options& chosen) {
  int gpus = 0;
  require(cudaGetDeviceCount(&gpus));
  if (gpus < 2 && !chosen.on_one_gpu) {
    throw std::runtime_error(
        "needs two GPUs, and here is one; --one-gpu runs both ranks on it, which checks bytes "
        "and measures no link");
  }
  print_device();
  const two_ranks ranks{data_at + 2 * chosen.mebibytes * mebibyte, chosen.on_one_gpu};
  std::string missing = "both ranks are on one GPU";
  const auto nccl = chosen.on_one_gpu ? nullptr : nccl_calls::open(missing);
  if (nccl == nullptr) std::printf("NCCL is skipped: %s\n", missing.c_str());
  if (nccl != nullptr) std::printf("NCCL %d, NCCL_NVLS_ENABLE=0\n", nccl->version());
  program.print(tables, meter{chosen, ranks, nccl.get()});
}

}  // namespace
}  // namespace tmap::apps::bench

int main(int argc, char** argv) {
  using namespace tmap::apps::bench;
  setenv("NCCL_NVLS_ENABLE", "0", 1);  // NCCL must not use multicast
  table_program program({"peer_bench", "Measures puts, gets, signals and exchanges between two GPUs.",
                         "tables to print: bandwidth, latency, exchange"},
                        tables);
  options chosen;
  program.options()
      .add_option("-m,--mebibytes", chosen.mebibytes, "MiB that bandwidth moves; windows have twice as many")
      ->check(CLI::Range(1, 16384))
      ->capture_default_str();
  program.options().add_flag("--one-gpu", chosen.on_one_gpu,
                             "both ranks on GPU 0, to check bytes without a second GPU");
  return program.run(argc, argv, [&] { measure(program, chosen); });
}
