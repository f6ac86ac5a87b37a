// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/earlier_results.hpp"

#include "apps/tmap/pad/dtype.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string_view>

namespace tmap::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Takes `part` off the beginning of `text`, if it is there.
bool take(std::string_view& text, std::string_view part) {
  if (!text.starts_with(part)) return false;
  text.remove_prefix(part.size());
  return true;
}

bool is_type_and_rank(std::string_view text) {
  for (std::uint8_t i = 0; i < dtype_count; ++i) {
    std::string_view rest = text;
    if (!take(rest, info(static_cast<dtype>(i)).name) || !take(rest, "_rank") || rest.empty()) continue;
    if (rest.find_first_not_of("0123456789") == std::string_view::npos) return true;
  }
  return false;
}

/// Whether this is "batch_pictures.npy", "batch_f32_rank2.npy" (`batch_plan::name`),
/// "contact_sheet.png".
bool is_result_name(std::string_view name) {
  if (name == contact_sheet_name) return true;
  if (!take(name, "batch_") || !name.ends_with(".npy")) return false;
  name.remove_suffix(4);
  return name == "pictures" || is_type_and_rank(name);
}

/// Returns the names of the results that a report lists. Nothing if it is no report of this tool.
std::optional<std::vector<std::string>> listed_in(const fs::path& report) {
  std::error_code fault;
  if (!fs::is_regular_file(report, fault)) return std::nullopt;  // a pipe would never be opened
  std::ifstream file{report, std::ios::binary};
  const json read = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!read.is_object() || !read.contains("engine") || !read.contains("batches") || !read["batches"].is_array()) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  const auto list = [&names](const json& name) {
    if (name.is_string() && is_result_name(name.get_ref<const std::string&>())) names.push_back(name);
  };
  for (const json& batch : read["batches"]) {
    if (batch.is_object() && batch.contains("file")) list(batch["file"]);
  }
  if (read.contains("contact_sheet")) list(read["contact_sheet"]);
  return names;
}

/// Files of the folder that have the name of a result.
std::vector<std::string> results_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code fault;
  for (fs::directory_iterator entry{folder, fault}; !fault && entry != fs::directory_iterator{};
       entry.increment(fault)) {
    const std::string name = entry->path().filename().string();
    if (is_result_name(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_same(const fs::path& a, const fs::path& b) {
  std::error_code fault;
  return fs::equivalent(a, b, fault) && !fault;
}

}  // namespace

outcome<std::vector<fs::path>> find_earlier_results(const fs::path& folder) {
  const fs::path report = folder / report_name;
  std::vector<std::string> listed;
  std::vector<fs::path> found;
  std::error_code fault;
  if (fs::exists(fs::symlink_status(report, fault))) {
    const auto names = listed_in(report);
    if (!names) return refuse("{}: it is not a report of tmap pad; choose another folder for --out", report.string());
    listed = *names;
    found.push_back(report);
  }
  for (const std::string& name : results_in(folder)) {
    if (std::find(listed.begin(), listed.end(), name) == listed.end()) {
      return refuse(
          "{}: it has the name of a result, and no report.json next to it lists it; remove it, or choose "
          "another folder for --out",
          (folder / name).string());
    }
    found.push_back(folder / name);
  }
  return found;
}

outcome<void> check_inputs_apart(const std::vector<std::string>& inputs, const fs::path& folder) {
  for (const std::string& input : inputs) {
    if (is_same(input, folder)) {
      return refuse("{}: --out is this folder, where the next run would read the results; choose another", input);
    }
    std::error_code fault;
    const fs::path file = fs::canonical(input, fault);
    if (!fault && is_result_name(file.filename().string()) && is_same(file.parent_path(), folder)) {
      return refuse("{}: it has the name of a result and lies in --out; choose another folder", input);
    }
  }
  return {};
}

}  // namespace tmap::tool
