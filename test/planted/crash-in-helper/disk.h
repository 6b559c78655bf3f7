// Files that only grow.
#pragma once

#include <string>
#include <vector>

class File {
 public:
  explicit File(const char* path);
  bool append(const std::string& text);
  std::vector<std::string> lines() const;

 private:
  int fd_;
  long size_ = 0;
};
