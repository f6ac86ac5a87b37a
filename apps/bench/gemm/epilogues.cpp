// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/gemm/epilogues.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "apps/bench/gemm/shapes.hpp"
#include "apps/support/require.hpp"

namespace tmap::apps::bench {
namespace {

using gemm::gate_columns;
using gemm::gate_function;
using gemm::result_type;

/// A graph of calls in a row, ready to launch.
class repeated_call {
 public:
  template <class Enqueue>
  repeated_call(cudaStream_t stream, const Enqueue& enqueue, int times)
      : graph_(stream, enqueue, times), times_(times) {
    require(cudaGraphInstantiate(&executable_, graph_.get(), 0));
  }
  ~repeated_call() { cudaGraphExecDestroy(executable_); }
  repeated_call(const repeated_call&) = delete;
  repeated_call& operator=(const repeated_call&) = delete;

  /// Returns the microseconds of one call.
  double microseconds(const timer& time) const {
    const auto launch = [&](cudaStream_t stream) { require(cudaGraphLaunch(executable_, stream)); };
    return time.stream_microseconds_behind(launch, 0, 1) / times_;
  }

 private:
  captured_graph graph_;
  int times_;
  cudaGraphExec_t executable_{};
};

/// The microseconds of a call, and of the plain one in the bursts between.
struct paired_time {
  double changed;
  double plain;
};

/// Measures two calls in bursts of 10 ms in turn, so that both see the same clocks.
template <class Enqueue>
paired_time measure_in_turn(const timer& time, const Enqueue& changed, const Enqueue& plain) {
  constexpr double burst_microseconds = 10000;
  constexpr int rounds = 20;
  constexpr int skipped = 3;
  const int times = std::clamp(static_cast<int>(burst_microseconds / time.stream_microseconds(plain, 3)), 1, 100);
  const repeated_call calls[]{{time.stream(), changed, times}, {time.stream(), plain, times}};
  double sums[2]{};
  for (int round = -skipped; round < rounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      const double spent = calls[i].microseconds(time);
      if (round >= 0) sums[i] += spent;
    }
  }
  return {sums[0] / rounds, sums[1] / rounds};
}

/// One kind of results.
template <class Problem>
struct result_kind {
  std::string name;
  std::function<void(Problem&)> change;
};

result_kind<gemm::row_problem> gated(const std::string& name, gate_columns columns,
                                     const std::function<void(gemm::row_problem&)>& more = {}) {
  return {name + (columns == gate_columns::halves ? ", halves" : ", interleaved"), [=](gemm::row_problem& problem) {
            problem.epilogue.gate.function = gate_function::silu;
            problem.epilogue.gate.columns = columns;
            problem.c.pitch_bytes = problem.n / 2 * gemm::result_bytes(problem.c_type);
            if (more) more(problem);
          }};
}

void make_8_bits(gemm::row_problem& problem, std::uint64_t columns, float* scales) {
  problem.c_type = result_type::f8_e4m3;
  problem.c.pitch_bytes = columns;
  problem.c_scales = {scales, columns / gemm::scaled_results, 1};
}

std::vector<result_kind<gemm::row_problem>> kinds_of_rows(const epilogue_memory& with) {
  using problem = gemm::row_problem;
  std::vector<result_kind<problem>> made{
      {"bias", [=](problem& of) { of.epilogue.bias = with.bias; }},
      {"row and column factors",
       [=](problem& of) {
         of.epilogue.row_scales = with.row_scales;
         of.epilogue.column_scales = with.column_scales;
       }},
      {"added to bf16", [](problem& of) { of.accumulate = true; }},
      {"f32",
       [](problem& of) {
         of.c_type = result_type::f32;
         of.c.pitch_bytes *= 2;
       }},
      {"added to f32",
       [](problem& of) {
         of.c_type = result_type::f32;
         of.c.pitch_bytes *= 2;
         of.accumulate = true;
       }},
      {"e4m3 with scales", [=](problem& of) { make_8_bits(of, of.n, with.c_scales); }}};
  for (const gate_columns columns : {gate_columns::halves, gate_columns::interleaved}) {
    made.push_back(gated("SiLU gate", columns));
    made.push_back(gated("gate of gpt-oss with bias", columns, [=](problem& of) {
      of.epilogue.gate.alpha = 1.702f;
      of.epilogue.gate.limit = 7;
      of.epilogue.gate.value_shift = 1;
      of.epilogue.bias = with.bias;
    }));
    made.push_back(gated("SiLU gate, kept", columns, [=](problem& of) {
      of.epilogue.gate.kept = {with.kept, of.n * sizeof(std::uint16_t)};
    }));
    made.push_back(
        gated("SiLU gate, e4m3 with scales", columns, [=](problem& of) { make_8_bits(of, of.n / 2, with.c_scales); }));
    made.push_back(gated("backward SiLU gate", columns, [=](problem& of) {
      of.epilogue.gate.backward = true;
      of.c.pitch_bytes = 2 * of.n * sizeof(std::uint16_t);
      of.epilogue.gate.kept = {with.kept, of.c.pitch_bytes};
    }));
  }
  return made;
}

std::vector<result_kind<gemm::weight_problem>> kinds_of_weights() {
  using problem = gemm::weight_problem;
  const auto as_f32 = [](problem& of) {
    of.c_type = result_type::f32;
    of.c.pitch_bytes *= 2;
    of.c_group_pitch_bytes *= 2;
  };
  return {
      {"added to bf16", [](problem& of) { of.accumulate = true; }}, {"f32", as_f32}, {"added to f32", [=](problem& of) {
                                                                                        as_f32(of);
                                                                                        of.accumulate = true;
                                                                                      }}};
}

template <class Problem>
void print_kinds(const timer& time, const operand_memory& memory, const std::string& name, const Problem& plain,
                 const std::vector<result_kind<Problem>>& kinds) {
  std::printf("\n%s\n\n| results | us | bf16 in turn, us | times as long |\n| --- | --- | --- | --- |\n", name.c_str());
  for (const result_kind<Problem>& kind : kinds) {
    Problem changed = plain;
    kind.change(changed);
    const auto call = [&](const Problem& problem) {
      return std::function<void(cudaStream_t)>{[&memory, problem](cudaStream_t stream) {
        require(gemm::multiply(problem, {{cuda::stream_ref{stream}, memory.scratch()}}));
      }};
    };
    const paired_time took = measure_in_turn(time, call(changed), call(plain));
    std::printf("| %s | %.1f | %.1f | %.3f |\n", kind.name.c_str(), took.changed, took.plain,
                took.changed / took.plain);
    std::fflush(stdout);
  }
}

}  // namespace

void print_epilogues(const timer& time, operand_memory& memory) {
  std::printf("Results of other kinds, and plain ones in turn with each. Operands of bf16, random normal numbers.\n");
  const epilogue_memory with = memory.epilogues();
  for (const std::size_t i : {0, 3, 4}) {
    const row_shape& shape = table_shapes()[i];
    print_kinds(time, memory, shape.name(), memory.row_problem_of(shape, drawn_sizes(shape)), kinds_of_rows(with));
  }
  row_shape shape = weight_shape();
  shape.groups /= 2;  // C of f32 has twice the bytes
  print_kinds(time, memory, "gradient of weights, " + shape.name(), memory.weight_problem_of(shape, drawn_sizes(shape)),
              kinds_of_weights());
}

}  // namespace tmap::apps::bench
