// Files: an owned descriptor, complete reads and writes, and replacing a file so that a crash leaves either the old one
// or the new one.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base.h"

namespace kv {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// Writes everything, even if the kernel accepts it in pieces.
Status write_all(int fd, std::string_view bytes);

// Nothing if there is no such file. An unreadable file is fatal, because otherwise the node would continue without a
// part of its state.
std::optional<std::string> read_file(const std::filesystem::path& path);

// Writes `path`.tmp, syncs it, renames it over `path` and syncs the folder. On failure the temporary file is removed
// and `path` is unchanged.
Status replace_file(const std::filesystem::path& path, std::string_view content);

// A node's vote must outlive the node, or it could vote twice in a term.
struct Ballot {
  Term term = 0;
  int voted_for = 0;  // 0: nobody
};
Ballot read_ballot(const std::filesystem::path& path);
void write_ballot(const std::filesystem::path& path, const Ballot& ballot);

}  // namespace kv
