// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/report.hpp"

#include <nlohmann/json.hpp>

namespace tmap::tool {
namespace {

using nlohmann::ordered_json;

ordered_json tensor_json(const batch_plan& plan, std::size_t member, const tensor& t) {
  ordered_json entry{{"name", t.name}, {"dtype", info(t.type).name}, {"shape", t.shape}};
  if (plan.is_empty(member)) {
    entry.update({{"empty", true}, {"note", "no elements: its place is all padding"}});
    return entry;
  }
  if (!t.note.empty()) entry["note"] = t.note;
  return entry;
}

ordered_json times_json(const finished_batch& batch) {
  return {{"upload", batch.times.upload},
          {"copy", batch.times.copy},
          {"download", batch.times.download},
          {"check", batch.check_seconds}};
}

ordered_json batch_json(const finished_batch& batch, const std::vector<tensor>& tensors) {
  const batch_plan& plan = batch.plan;
  shape_t shape{plan.members.size()};
  shape.insert(shape.end(), plan.shape.begin(), plan.shape.end());
  ordered_json members = ordered_json::array();
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    members.push_back(tensor_json(plan, i, tensors[plan.members[i]]));
  }
  ordered_json entry{{"file", batch.file}, {"dtype", info(plan.type).name}, {"shape", shape}};
  if (info(plan.type).npy_is_bits) {
    entry["note"] = fmt::format("{} bits, as numpy has no such type", info(plan.type).name);
  }
  entry.update({{"fill", batch.fill()},
                {"bytes", plan.dense_bytes},
                {"checked_bytes", plan.dense_bytes},
                {"seconds", times_json(batch)},
                {"copy_gigabytes_per_second", batch.gigabytes_per_second()},
                {"tensors", members}});
  return entry;
}

}  // namespace

double finished_batch::gigabytes_per_second() const {
  if (times.copy <= 0) return 0;
  return static_cast<double>(plan.valid_bytes + plan.dense_bytes) / times.copy / 1e9;
}

std::string report_json(const run_record& record) {
  ordered_json report{{"engine", record.chosen.name}, {"engine_reason", record.chosen.reason}};
  if (!record.chosen.device.empty()) report["gpu"] = record.chosen.device;
  report["read_seconds"] = record.read_seconds;
  report["batches"] = ordered_json::array();
  for (const finished_batch& batch : record.batches) report["batches"].push_back(batch_json(batch, record.tensors));
  if (!record.contact_sheet.empty()) report["contact_sheet"] = record.contact_sheet;
  report["failures"] = record.failures;
  // File names need not be UTF-8.
  return report.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tmap::tool
