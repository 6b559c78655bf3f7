// After repeated Ctrl-C, every wait of rose ends, whatever hangs.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "base/cancel.h"
#include "base/pipe.h"

using namespace rose;

namespace {

// Runs `does` in a child process, because a cancellation cannot be undone, and reads what the child prints on stderr.
// The child ends with this process, so that it does not outlive a test that is killed.
class Child {
 public:
  explicit Child(const std::function<int()>& does) {
    auto pipe = make_pipe();
    REQUIRE(pipe);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(pipe->write.get(), STDERR_FILENO);
      ::_exit(cancel::install() ? does() : 99);
    }
    stderr_ = std::move(pipe->read);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void send(int signal) const { ::kill(pid_, signal); }
  // Reads until the child has printed `word`.
  bool prints(const std::string& word) {
    while (text_.find(word) == std::string::npos) {
      char bytes[256];
      const ssize_t n = ::read(stderr_.get(), bytes, sizeof bytes);
      if (n <= 0) return false;
      text_.append(bytes, static_cast<std::size_t>(n));
    }
    return true;
  }
  int end() {
    (void)prints(std::string(1, '\0'));  // '\0' is never printed, so this reads until the output ends
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  pid_t pid_ = 0;
  Fd stderr_;
  std::string text_;
};

void print(const std::string& word) { (void)!::write(STDERR_FILENO, word.data(), word.size()); }

void until(const std::function<bool()>& condition) {
  while (!condition()) ::usleep(1000);
}

}  // namespace

TEST_CASE("a hanging cleanup is reported at the next Ctrl-C and aborted at the one after it", "[cancel]") {
  Child rose([] {
    print("ready\n");
    until(cancel::requested);
    print("cleaning up\n");
    for (;;) ::pause();
    return 98;
  });
  REQUIRE(rose.prints("ready\n"));
  rose.send(SIGINT);
  REQUIRE(rose.prints("cleaning up\n"));
  // Only a repeated Ctrl-C counts as a further request; a repeated SIGHUP or SIGTERM does not.
  rose.send(SIGHUP);
  rose.send(SIGTERM);
  rose.send(SIGTERM);
  rose.send(SIGINT);
  REQUIRE(rose.prints("still cleaning up"));
  rose.send(SIGINT);
  CHECK(rose.end() == 4);
  CHECK(rose.text().find("'rose heal' undoes what is left") != std::string::npos);
}

TEST_CASE("each further Ctrl-C ends only the current wait of the cleanup", "[cancel]") {
  Child rose([] {
    {
      const cancel::Patience from_before;
      print("ready\n");
      until(cancel::requested);
      // the first Ctrl-C asks for the cleanup, so it must not end the cleanup's own waits
      if (from_before.over()) return 10;
      print("first\n");
      until([&] { return from_before.over(); });
    }
    {
      const cancel::Patience next;
      if (next.over()) return 11;
      print("second\n");
      until([&] { return next.over(); });
    }
    return 0;
  });
  REQUIRE(rose.prints("ready\n"));
  rose.send(SIGINT);
  REQUIRE(rose.prints("first\n"));
  rose.send(SIGINT);
  REQUIRE(rose.prints("second\n"));
  rose.send(SIGINT);
  CHECK(rose.end() == 0);
  CHECK(rose.text() == "ready\nfirst\nsecond\n");
}
