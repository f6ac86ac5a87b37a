// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/id_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "lib/support/arguments.hpp"

namespace tmap::peer {
namespace {

constexpr support::argument file_argument() {
  return {"start.id_file"};
}

constexpr char mark[16] = "tmap peer id 01";

/// The whole content of the file.
struct id_record {
  char begin[sizeof mark]{};
  std::uint64_t run{};
  peer_id id{};
};
static_assert(sizeof(id_record) == 152);

struct closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using open_file = std::unique_ptr<std::FILE, closer>;

failure cannot_write() {
  return support::refused(file_argument(), "cannot be written (errno {found})", static_cast<std::uint64_t>(errno));
}

/// Writes all of it before the file gets its name.
bool write_whole(const std::string& path, const id_record& record) {
  open_file file{std::fopen(path.c_str(), "wb")};
  if (file == nullptr) return false;
  const bool is_written = std::fwrite(&record, sizeof record, 1, file.get()) == 1;
  return (std::fclose(file.release()) == 0) && is_written;
}

enum class found_file { none, other, of_this_run };

found_file read_whole(const peer_start& start, id_record& record) {
  const open_file file{std::fopen(start.id_file.c_str(), "rb")};
  if (file == nullptr) return found_file::none;
  const bool is_whole = std::fread(&record, sizeof record, 1, file.get()) == 1;
  const bool has_mark = is_whole && std::memcmp(record.begin, mark, sizeof mark) == 0;
  return has_mark && record.run == start.run ? found_file::of_this_run : found_file::other;
}

failure waited_for(found_file found, const peer_start& start) {
  error e{.code = status::peer_timeout,
          .found = start.run,
          .allowed = static_cast<std::uint64_t>(start.patience.count()),
          .argument = file_argument().name()};
  e.reason = found == found_file::none ? "was not written by rank 0 within {allowed} ms"
                                       : "is a file of another run; rank 0 of run {found} did not write it within "
                                         "{allowed} ms";
  return failure{e};
}

}  // namespace

result<void> write_id(const peer_start& start, const peer_id& id) {
  const std::string draft = start.id_file + ".tmp";
  id_record record{.run = start.run, .id = id};
  std::memcpy(record.begin, mark, sizeof mark);
  if (!write_whole(draft, record)) return cannot_write();
  if (std::rename(draft.c_str(), start.id_file.c_str()) != 0) return cannot_write();
  return {};
}

result<peer_id> read_id(const peer_start& start, const peer_calls& calls) {
  const std::uint64_t begin = calls.milliseconds();
  for (;;) {
    id_record record;
    const found_file found = read_whole(start, record);
    if (found == found_file::of_this_run) return record.id;
    if (calls.milliseconds() - begin > static_cast<std::uint64_t>(start.patience.count())) {
      return waited_for(found, start);
    }
    calls.nap();
  }
}

void remove_id(const peer_start& start) {
  static_cast<void>(std::remove(start.id_file.c_str()));
}

}  // namespace tmap::peer
