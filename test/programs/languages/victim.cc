// victim.c in C++.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace tale {
class Victim {
 public:
  explicit Victim(int fd) : fd_(fd) {}
  __attribute__((noinline)) void step(int n, const std::string& word) {
    char byte = 0;
    const bool ok = ::read(fd_, &byte, 1) >= 0;
    const std::string line = word + " " + std::to_string(n) + " = " + (ok ? "ok" : std::strerror(errno)) + "\n";
    if (::write(1, line.data(), line.size()) < 0) ::_exit(1);
  }

 private:
  int fd_;
};
}  // namespace tale

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  while (::access(argv[2], F_OK) != 0) ::usleep(2000);
  tale::Victim victim(::open(argv[1], O_RDONLY));
  for (int n = 1; n <= 5; ++n) victim.step(n, "read");
  if (::write(1, "done\n", 5) < 0) return 1;
  for (;;) ::pause();
}
