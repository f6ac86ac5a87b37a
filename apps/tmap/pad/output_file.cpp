// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>

namespace tmap::tool {
namespace {

namespace fs = std::filesystem;

/// Removes the unfinished file when a signal ends the program meanwhile (Ctrl-C, a closed terminal,
/// kill). One that the program was started to ignore, as by nohup, stays ignored.
class removal_at_signal {
 public:
  explicit removal_at_signal(const fs::path& path) {
    unfinished = path.c_str();
    struct sigaction action {};
    action.sa_handler = remove_and_die;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (std::size_t i = 0; i < std::size(signals); ++i) {
      sigaction(signals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);
    }
  }
  ~removal_at_signal() {
    for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  removal_at_signal(const removal_at_signal&) = delete;
  removal_at_signal& operator=(const removal_at_signal&) = delete;

 private:
  static constexpr int signals[]{SIGHUP, SIGINT, SIGTERM};

  /// The second time the signal does what it does without a handler.
  static void remove_and_die(int signal) {
    unlink(unfinished);
    raise(signal);
  }

  static inline const char* unfinished{};
  struct sigaction before_[std::size(signals)]{};
};

fs::path beside(const fs::path& path) {
  return path.parent_path() / fmt::format(".{}.{}.partial", path.filename().string(), getpid());
}

/// Returns 0, or the system's error number.
int write_all(int file, std::span<const std::byte> piece) {
  constexpr std::size_t most = std::size_t{1} << 24;  // a signal waits for the end of a call
  while (!piece.empty()) {
    const ssize_t written = write(file, piece.data(), std::min(piece.size(), most));
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) piece = piece.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

outcome<void> write_file(const fs::path& path, const std::vector<std::span<const std::byte>>& pieces) {
  const fs::path partial = beside(path);
  const removal_at_signal guard{partial};
  const int file = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return refuse("{}: it cannot be made ({})", path.string(), std::strerror(errno));
  int fault = 0;
  for (const auto piece : pieces) {
    if (fault == 0) fault = write_all(file, piece);
  }
  if (close(file) != 0 && fault == 0) fault = errno;
  if (fault == 0 && std::rename(partial.c_str(), path.c_str()) != 0) fault = errno;
  if (fault == 0) return {};
  unlink(partial.c_str());
  return refuse("{}: it cannot be written ({})", path.string(), std::strerror(fault));
}

outcome<void> remove_file(const fs::path& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return refuse("{}: it cannot be removed ({})", path.string(), std::strerror(errno));
}

outcome<void> prepare_folder(const fs::path& folder) {
  std::error_code fault;
  fs::create_directories(folder, fault);
  if (!fault && !fs::is_directory(folder, fault)) return refuse("{}: it is not a folder", folder.string());
  if (fault) return refuse("{}: the folder cannot be made ({})", folder.string(), fault.message());
  if (access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return refuse("{}: the folder cannot be written to ({})", folder.string(), std::strerror(errno));
}

}  // namespace tmap::tool
