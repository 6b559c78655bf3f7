#include "disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

File::File(const char* path) : fd_(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  struct stat status = {};
  if (fd_ < 0 || fstat(fd_, &status) != 0) {
    perror(path);
    exit(1);
  }
  size_ = status.st_size;
}

bool File::append(const std::string& text) {
  if (pwrite(fd_, text.data(), text.size(), size_) != static_cast<ssize_t>(text.size())) return false;
  size_ += static_cast<long>(text.size());
  return true;
}

std::vector<std::string> File::lines() const {
  std::string text(static_cast<std::size_t>(size_), '\0');
  if (pread(fd_, text.data(), text.size(), 0) != size_) perror("cannot read");
  std::vector<std::string> lines;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}
