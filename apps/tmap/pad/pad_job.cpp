// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/pad_job.hpp"

#include "apps/support/progress.hpp"
#include "apps/support/stopwatch.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/pad/batch_bytes.hpp"
#include "apps/tmap/pad/contact_sheet.hpp"
#include "apps/tmap/pad/earlier_results.hpp"
#include "apps/tmap/pad/inputs.hpp"
#include "apps/tmap/pad/output_file.hpp"
#include "apps/tmap/pad/report.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <new>
#include <utility>

namespace tmap::tool {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// One run. Each step records its failures; a step after a failure runs only with --keep-going.
class pad_run {
 public:
  explicit pad_run(const pad_request& request) : request_{request} {}

  int run() {
    if (!start()) return exit_no;
    read();
    std::vector<batch_plan> plans = may_go_on() ? plan() : std::vector<batch_plan>{};
    for (batch_plan& plan : plans) {
      if (may_go_on()) finish(std::move(plan));
    }
    if (!record_.batches.empty()) write_report();
    return record_.failures.empty() ? exit_success : exit_no;
  }

 private:
  bool may_go_on() const { return record_.failures.empty() || request_.keep_going; }

  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) const {
    if (request_.quiet) return;
    fmt::print(text, std::forward<Args>(args)...);
    std::fflush(stdout);  // before the sentences on standard error, and before long work
  }

  void fail(const std::string& sentence) {
    fmt::print(stderr, "tmap pad: {}\n", sentence);
    record_.failures.push_back(sentence);
  }

  bool start() {
    const auto chosen = choose_engine(request_.engine);
    if (!chosen) {
      fail(chosen.error());
      return false;
    }
    record_.chosen = *chosen;
    say("engine: {}{}{} ({})\n", chosen->name, chosen->device.empty() ? "" : ", ", chosen->device, chosen->reason);
    outcome<void> ready = check_inputs_apart(request_.inputs, request_.out);
    if (ready) ready = find_earlier();
    if (ready) ready = prepare_folder(request_.out);
    if (!ready) fail(ready.error());
    return ready.has_value();
  }

  outcome<void> find_earlier() {
    auto found = find_earlier_results(request_.out);
    if (!found) return refusal{found.error()};
    earlier_ = std::move(*found);
    return {};
  }

  void read() {
    apps::stopwatch watch;
    loaded_inputs loaded = read_inputs(request_.inputs, request_.plan.most_bytes, request_.keep_going);
    record_.read_seconds = watch.lap();
    record_.tensors = std::move(loaded.tensors);
    for (const std::string& sentence : loaded.failures) fail(sentence);
    if (!request_.quiet) {
      for (const std::string& note : loaded.notes) fmt::print(stderr, "tmap pad: {}\n", note);
    }
    if (!may_go_on()) return;
    const auto empty =
        std::count_if(record_.tensors.begin(), record_.tensors.end(), [](const tensor& t) { return t.bytes.empty(); });
    say("read {}{} in {:.2f} s\n", counted(record_.tensors.size(), "tensor"),
        empty == 0 ? "" : fmt::format(" ({} of them empty)", empty), record_.read_seconds);
    say_what_reading_changed();
  }

  /// A result that lost something must not look exact.
  void say_what_reading_changed() const {
    std::map<std::string, std::uint64_t> counts;
    for (const tensor& t : record_.tensors) {
      if (!t.note.empty()) ++counts[t.note];
    }
    for (const auto& [note, count] : counts) say("changed when read: {}: {}\n", counted(count, "tensor"), note);
  }

  std::vector<batch_plan> plan() {
    std::vector<batch_plan> plans;
    const std::size_t cropped_rank = request_.plan.crop.size();
    bool is_crop_used = cropped_rank == 0;
    for (const std::vector<std::size_t>& members : group(record_.tensors)) {
      is_crop_used |= std::max<std::size_t>(record_.tensors[members.front()].shape.size(), 1) == cropped_rank;
      auto planned = plan_batch(record_.tensors, members, request_.plan);
      if (planned) plans.push_back(std::move(*planned));
      if (!planned) fail(planned.error());
    }
    if (!is_crop_used) fail(fmt::format("--crop names {} dimensions, which no batch has", cropped_rank));
    return plans;
  }

  void finish(batch_plan&& plan) {
    const std::string name = plan.name;
    try {
      if (const auto done = copy_and_write(std::move(plan)); !done) fail(done.error());
    } catch (const std::bad_alloc&) {
      fail(fmt::format("{}: there is not enough memory for it", name));
    }
  }

  outcome<void> copy_and_write(batch_plan&& plan) {
    finished_batch batch{std::move(plan), "", {}, 0};
    std::vector<std::byte> dense(batch.plan.dense_bytes);
    if (batch.plan.has_work()) {
      const apps::progress bar{"copying"};
      const std::vector<std::byte> sources = pack_sources(batch.plan, record_.tensors);
      const auto times = record_.chosen.run({batch.plan, sources, dense});
      if (!times) return refuse("{}: {}", batch.plan.name, times.error());
      batch.times = *times;
    }
    apps::stopwatch watch;
    if (const auto same = check_batch(batch.plan, record_.tensors, dense); !same) return same;
    batch.check_seconds = watch.lap();

    batch.file = batch.plan.name + ".npy";
    if (const auto cleared = remove_earlier(); !cleared) return cleared;
    shape_t shape{batch.plan.members.size()};
    shape.insert(shape.end(), batch.plan.shape.begin(), batch.plan.shape.end());
    const std::string header = npy_header(batch.plan.type, shape);
    if (const auto done = write(request_.out / batch.file, {bytes_of(header), dense}); !done) return done;
    describe(batch, shape);
    record_.batches.push_back(std::move(batch));
    return draw(record_.batches.back().plan, dense);
  }

  static outcome<void> write(const std::filesystem::path& path, const std::vector<std::span<const std::byte>>& pieces) {
    const apps::progress bar{"writing"};
    return write_file(path, pieces);
  }

  /// Runs before the first result is written, so that no report ever stands next to another run's
  /// batches.
  outcome<void> remove_earlier() {
    for (const std::filesystem::path& path : std::exchange(earlier_, {})) {
      if (const auto removed = remove_file(path); !removed) return removed;
    }
    return {};
  }

  /// The simulator's speed is no measure of anything.
  std::string rate_of(const finished_batch& batch) const {
    return record_.chosen.name == "gpu" ? fmt::format(" ({:.1f} GB/s)", batch.gigabytes_per_second()) : std::string{};
  }

  void describe(const finished_batch& batch, const shape_t& shape) const {
    say("{}: {} {}, {:.1f} % filled, copied in {:.3f} ms{}, every byte checked\n", (request_.out / batch.file).string(),
        info(batch.plan.type).name, to_string(shape), 100 * batch.fill(), 1000 * batch.times.copy, rate_of(batch));
  }

  outcome<void> draw(const batch_plan& plan, std::span<const std::byte> dense) {
    if (!record_.tensors[plan.members.front()].picture) return {};
    const std::vector<std::byte> png = contact_sheet_of(plan, dense);
    const std::filesystem::path path = request_.out / contact_sheet_name;
    if (png.empty()) return refuse("{}: there is not enough memory for it", path.string());
    if (const auto written = write(path, {png}); !written) return written;
    record_.contact_sheet = path.filename().string();
    return {};
  }

  std::vector<std::byte> contact_sheet_of(const batch_plan& plan, std::span<const std::byte> dense) const {
    const apps::progress bar{"drawing"};
    return draw_contact_sheet(plan, record_.tensors, dense).png();
  }

  void write_report() {
    const std::filesystem::path path = request_.out / report_name;
    const auto written = write_file(path, {bytes_of(report_json(record_))});
    if (!written) return fail(written.error());
    say("{}\n", path.string());
    if (!record_.contact_sheet.empty()) say("{}\n", (request_.out / record_.contact_sheet).string());
  }

  const pad_request& request_;
  run_record record_;
  std::vector<std::filesystem::path> earlier_;  ///< results of an earlier run, its report first
};

}  // namespace

int run_pad(const pad_request& request) {
  return pad_run{request}.run();
}

}  // namespace tmap::tool
