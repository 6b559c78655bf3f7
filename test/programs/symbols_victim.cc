// A program with every kind of function name that src/symbols distinguishes. It is only read, never executed.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

struct Entry {
  int term = 0;
};

class Raft {
 public:
  __attribute__((noinline)) void append(Entry const& entry);
  __attribute__((noinline)) void append(std::string const& text);
  __attribute__((noinline)) int term() const;
  __attribute__((noinline)) Raft& operator<<(int term);
  __attribute__((noinline)) bool operator()(int term);
  __attribute__((noinline)) void inline_in_class(int term) { entries_.push_back({term}); }

 private:
  std::vector<Entry> entries_;
};

void Raft::append(Entry const& entry) { entries_.push_back(entry); }
void Raft::append(std::string const& text) { entries_.push_back({static_cast<int>(text.size())}); }
int Raft::term() const { return entries_.empty() ? 0 : entries_.back().term; }
Raft& Raft::operator<<(int term) {
  append(Entry{term});
  return *this;
}
bool Raft::operator()(int term) { return term == this->term(); }

template <typename T>
struct Queue {
  __attribute__((noinline)) void push(T item) { items.push_back(item); }
  std::vector<T> items;
};

template <typename T>
__attribute__((noinline)) T largest(T a, T b) {
  return a < b ? b : a;
}

namespace {
__attribute__((noinline)) int hidden(int x) {
  asm volatile("" ::: "memory");
  return x * 3;
}
}  // namespace

extern "C" {
__attribute__((noinline)) int raft_log_create(int x) { return hidden(x) + 1; }
// One address that has two names.
int raft_log_create_alias(int x) __attribute__((alias("raft_log_create")));
// Symbols that compilers create in addition to a function: parts of it, and specialised copies.
__attribute__((noinline)) int raft_cold(int x) asm("raft_log_create.cold");
int raft_cold(int x) { return x + 7; }
__attribute__((noinline)) int raft_part(int x) asm("_ZN4Raft6appendERK5Entry.part.0");
int raft_part(int x) { return x + 9; }
__attribute__((noinline)) int special(int x) asm("raft_snapshot.constprop.0");
int special(int x) { return x + 11; }
}

int main(int argc, char**) {
  Raft raft;
  raft.append(Entry{argc});
  raft.append(std::string(static_cast<std::size_t>(argc), 'x'));
  raft << argc;
  raft.inline_in_class(argc);
  Queue<int> queue;
  queue.push(raft.term());
  std::printf(
      "%d %d\n",
      largest(raft_log_create(argc), special(argc)) + raft_cold(argc) + raft_part(argc) + raft_log_create_alias(argc),
      static_cast<int>(raft(argc)));
  return 0;
}

// Make the debug information name a file of the program ("own/") that has the same file name as one of the C++ library.
#line 1 "own/stl_vector.h"
int of_own_file(int x) { return x + 13; }
