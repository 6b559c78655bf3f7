#include "store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

void replace_file(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".tmp";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) fail(temporary);
  if (write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size()) || fsync(fd) < 0)
    fail(temporary);
  close(fd);
  if (rename(temporary.c_str(), path.c_str()) < 0) fail(path);
}

// The nightly audit compares the keys with this sum.
std::uint64_t audit_sum(const std::string& key, const std::string& value) {
  std::uint64_t sum = 14695981039346656037u;
  for (int round = 0; round < 3000; ++round)
    for (const char c : key + value) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return sum;
}

}  // namespace

Store::Store(std::string folder) : folder_(std::move(folder)) {
  mkdir(folder_.c_str(), 0755);
  load();
}

// Reads the keys of the last save, and applies the journal's entries to them.
void Store::load() {
  std::uint64_t sum = 0;
  std::string key, value;
  std::ifstream saved(path("keys"));
  while (saved >> key >> value >> sum) keys[key] = value;
  std::ifstream journal(path("journal"));
  std::uint64_t at = 0;
  while (journal >> at >> key >> value) {
    keys[key] = value;
    position = at;
  }
  std::ifstream base(path("position"));
  if (std::uint64_t saved_position = 0; base >> saved_position && saved_position > position) position = saved_position;
  journal_ = open(path("journal").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (journal_ < 0) fail("journal");
  std::fprintf(stderr, "%zu keys as of position %llu\n", keys.size(), static_cast<unsigned long long>(position));
}

void Store::apply(std::uint64_t at, const std::string& key, const std::string& value) {
  const std::string line = std::to_string(at) + " " + key + " " + value + "\n";
  if (write(journal_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) fail("journal");
  keys[key] = value;
  position = at;
}

// Stores the position first, because entries that arrive meanwhile are compared with it.
void Store::install(std::uint64_t at, std::map<std::string, std::string> all) {
  position = at;
  keys = std::move(all);
  save_position();
  begin_journal();
  save_keys();
  std::fprintf(stderr, "installed a snapshot as of position %llu\n", static_cast<unsigned long long>(at));
}

void Store::save_position() { replace_file(path("position"), std::to_string(position) + "\n"); }

void Store::begin_journal() {
  if (ftruncate(journal_, 0) < 0) fail("journal");
}

void Store::save_keys() {
  std::ostringstream out;
  for (const auto& [key, value] : keys) out << key << ' ' << value << ' ' << audit_sum(key, value) << '\n';
  replace_file(path("keys"), out.str());
}
