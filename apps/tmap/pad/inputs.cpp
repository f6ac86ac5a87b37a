// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/inputs.hpp"

#include "apps/support/progress.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

namespace tmap::tool {
namespace {

namespace fs = std::filesystem;

enum class file_kind { none, png, jpeg, npy, safetensors };

file_kind kind_of_name(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (extension == ".png") return file_kind::png;
  if (extension == ".jpg" || extension == ".jpeg") return file_kind::jpeg;
  if (extension == ".npy") return file_kind::npy;
  return extension == ".safetensors" ? file_kind::safetensors : file_kind::none;
}

/// A picture under the wrong extension is common, so signatures count first.
file_kind kind_of(const fs::path& path, std::span<const std::byte> bytes) {
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  if (text.starts_with("\x89PNG")) return file_kind::png;
  if (text.starts_with("\xff\xd8\xff")) return file_kind::jpeg;
  if (text.starts_with("\x93NUMPY")) return file_kind::npy;
  return kind_of_name(path);
}

outcome<std::vector<std::byte>> read_bytes(const fs::path& path, std::uint64_t most_bytes) {
  std::error_code fault;
  const fs::file_status status = fs::status(path, fault);
  if (!fs::exists(status)) return refuse("there is no such file");
  if (!fs::is_regular_file(status)) return refuse("it is not a regular file");
  const std::uint64_t size = fs::file_size(path, fault);
  if (fault) return refuse("{}", fault.message());
  if (size > most_bytes) return refuse("its {} bytes are more than --max-bytes allows ({})", size, most_bytes);

  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return refuse("it cannot be opened ({})", std::strerror(errno));
  std::vector<std::byte> bytes(size);
  const std::size_t read = size == 0 ? 0 : std::fread(bytes.data(), 1, size, file);
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return refuse("it cannot be read ({})", std::strerror(errno));
  if (read != size) return refuse("it shrank while it was read");
  return bytes;
}

void keep(loaded_inputs& loaded, const fs::path& path, outcome<tensor> read) {
  if (!read) {
    loaded.failures.push_back(fmt::format("{}: {}", path.string(), read.error()));
    return;
  }
  read->name = read->name.empty() ? path.string() : path.string() + ":" + read->name;
  loaded.tensors.push_back(std::move(*read));
}

void append(loaded_inputs& all, loaded_inputs&& more) {
  std::move(more.tensors.begin(), more.tensors.end(), std::back_inserter(all.tensors));
  std::move(more.failures.begin(), more.failures.end(), std::back_inserter(all.failures));
}

loaded_inputs read_file(const fs::path& path, std::uint64_t most_bytes) try {
  auto bytes = read_bytes(path, most_bytes);
  if (!bytes) return {{}, {fmt::format("{}: {}", path.string(), bytes.error())}, {}};
  return read_tensors(path, std::move(*bytes), most_bytes);
} catch (const std::bad_alloc&) {
  return {{}, {fmt::format("{}: there is not enough memory to read it", path.string())}, {}};
}

/// The files that an input stands for, and how much of a folder was passed over.
struct expanded_input {
  std::vector<fs::path> files;
  std::uint64_t other_files{};
  std::uint64_t folders{};
};

void add_entry(expanded_input& expanded, const fs::directory_entry& entry) {
  std::error_code ignored;
  if (entry.is_directory(ignored)) {
    ++expanded.folders;
  } else if (kind_of_name(entry.path()) == file_kind::none) {
    ++expanded.other_files;
  } else {
    expanded.files.push_back(entry.path());
  }
}

/// An input is a file, or a folder for those in it.
outcome<expanded_input> expand(const fs::path& input) {
  std::error_code fault;
  if (!fs::is_directory(input, fault)) return expanded_input{{input}, 0, 0};
  expanded_input expanded;
  fs::directory_iterator entry{input, fault};
  for (; !fault && entry != fs::directory_iterator{}; entry.increment(fault)) add_entry(expanded, *entry);
  if (fault) return refuse("the folder cannot be read ({})", fault.message());
  if (expanded.files.empty())
    return refuse("the folder itself holds no .png, .jpg, .npy or .safetensors file (folders inside it are not read)");
  std::sort(expanded.files.begin(), expanded.files.end());
  return expanded;
}

/// Returns "3 files of other kinds and 1 folder", or nothing.
std::string passed_over(const expanded_input& expanded) {
  std::string text;
  if (expanded.other_files != 0) {
    text = fmt::format("{} {}", expanded.other_files,
                       expanded.other_files == 1 ? "file of another kind" : "files of other kinds");
  }
  if (expanded.folders != 0) {
    text +=
        fmt::format("{}{} folder{}", text.empty() ? "" : " and ", expanded.folders, expanded.folders == 1 ? "" : "s");
  }
  return text;
}

}  // namespace

loaded_inputs read_tensors(const fs::path& path, std::vector<std::byte> bytes, std::uint64_t most_bytes) {
  loaded_inputs loaded;
  const file_kind kind = kind_of(path, bytes);
  if (kind == file_kind::png) keep(loaded, path, read_png(bytes, most_bytes));
  if (kind == file_kind::jpeg) keep(loaded, path, read_jpeg(bytes, most_bytes));
  if (kind == file_kind::none) {
    keep(loaded, path, refuse("this tool does not read files of this kind (.png, .jpg, .npy, .safetensors)"));
  }
  if (kind != file_kind::npy && kind != file_kind::safetensors) return loaded;

  auto storage = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  if (kind == file_kind::npy) {
    keep(loaded, path, read_npy(std::move(storage)));
    return loaded;
  }
  auto tensors = read_safetensors(std::move(storage));
  if (!tensors) keep(loaded, path, refusal{tensors.error()});
  for (std::size_t i = 0; tensors && i < tensors->size(); ++i) keep(loaded, path, std::move((*tensors)[i]));
  return loaded;
}

loaded_inputs read_inputs(const std::vector<std::string>& inputs, std::uint64_t most_bytes, bool keep_going) {
  loaded_inputs loaded;
  std::vector<fs::path> files;
  for (const std::string& input : inputs) {
    auto expanded = expand(input);
    if (!expanded) {
      loaded.failures.push_back(fmt::format("{}: {}", input, expanded.error()));
      continue;
    }
    files.insert(files.end(), expanded->files.begin(), expanded->files.end());
    const std::string skipped = passed_over(*expanded);
    if (!skipped.empty()) loaded.notes.push_back(fmt::format("{}: passed over {}", input, skipped));
  }
  apps::progress bar{"reading", files.size()};
  for (const fs::path& file : files) {
    if (!loaded.failures.empty() && !keep_going) break;
    append(loaded, read_file(file, most_bytes));
    bar.advance(1);
  }
  return loaded;
}

}  // namespace tmap::tool
