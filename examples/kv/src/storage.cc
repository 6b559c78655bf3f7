#include "storage.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace kv {

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return Status::from_errno("write", errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return Status::ok();
}

std::optional<std::string> read_file(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    fatal("open %s: %s", path.c_str(), std::strerror(errno));
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) fatal("stat %s: %s", path.c_str(), std::strerror(errno));
  std::string content(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t have = 0;
  while (have < content.size()) {
    const ssize_t got = ::read(file.get(), content.data() + have, content.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fatal("read %s: %s", path.c_str(), std::strerror(errno));
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  content.resize(have);
  return content;
}

Status replace_file(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path temporary = path.string() + ".tmp";
  const auto give_up = [&](const char* what, int err) {
    ::unlink(temporary.c_str());
    return Status::from_errno(std::string(what) + " " + temporary.filename().string(), err);
  };

  Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return Status::from_errno("create " + temporary.filename().string(), errno);
  if (Status written = write_all(file.get(), content); !written) {
    ::unlink(temporary.c_str());
    return Status::error(temporary.filename().string() + ": " + written.message());
  }
  if (::fsync(file.get()) != 0) return give_up("fsync", errno);
  file.reset();
  if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up("rename", errno);

  // The new name is durable only once the folder is.
  const Fd folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return Status::from_errno("sync folder", errno);
  return Status::ok();
}

Ballot read_ballot(const std::filesystem::path& path) {
  Ballot ballot;
  const std::optional<std::string> content = read_file(path);
  if (!content) return ballot;
  Reader in(*content);
  const std::uint32_t sum = in.u32();
  ballot.term = in.u64();
  ballot.voted_for = static_cast<int>(in.u32());
  if (!in.good() || crc32(std::string_view(*content).substr(4)) != sum) fatal("%s is damaged", path.c_str());
  return ballot;
}

void write_ballot(const std::filesystem::path& path, const Ballot& ballot) {
  Writer body;
  body.u64(ballot.term);
  body.u32(static_cast<std::uint32_t>(ballot.voted_for));
  Writer file;
  file.u32(crc32(body.bytes()));
  if (Status done = replace_file(path, file.bytes() + body.bytes()); !done) {
    fatal("the ballot can't be kept: %s", done.message().c_str());
  }
}

}  // namespace kv
