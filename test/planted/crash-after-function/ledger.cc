// A ledger. Its entries go to the journal of the day. To close the day, the ledger adds the entries to the balances,
// writes an archive, and begins a new journal. After a crash, it reads the balances and applies the journal's entries
// to them.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "serve.h"

struct Entry {
  std::string account;
  long amount;
};

class Ledger {
 public:
  void recover();
  bool add(const Entry& entry);
  bool close_day();
  long balance(const std::string& account) const;

 private:
  bool write_balances();
  bool archive_day();
  bool begin_day();

  std::map<std::string, long> balances_;
  std::vector<Entry> journal_;
  int journal_fd_ = -1;
  int day_ = 1;
};

static bool write_file(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const bool good = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  close(fd);
  return good;
}

void Ledger::recover() {
  std::ifstream balances("balances");
  std::string account;
  long amount = 0;
  while (balances >> account >> amount) balances_[account] = amount;
  std::ifstream journal("journal");
  while (journal >> account >> amount) {
    journal_.push_back({account, amount});
    balances_[account] += amount;
  }
  while (std::filesystem::exists("archive/day-" + std::to_string(day_))) ++day_;
  journal_fd_ = open("journal", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  std::filesystem::create_directory("archive");
  if (journal_fd_ < 0) {
    perror("journal");
    exit(1);
  }
  note("day %d: %zu accounts, %zu entries of today", day_, balances_.size(), journal_.size());
}

bool Ledger::add(const Entry& entry) {
  const std::string line = entry.account + " " + std::to_string(entry.amount) + "\n";
  if (write(journal_fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return false;
  journal_.push_back(entry);
  balances_[entry.account] += entry.amount;
  return true;
}

// The bug: after a crash at any time between writing the balances and beginning the new journal, the restarted ledger
// adds the entries of this day to the balances again.
bool Ledger::close_day() { return write_balances() && archive_day() && begin_day(); }

bool Ledger::write_balances() {
  std::string text;
  for (const auto& [account, amount] : balances_) text += account + " " + std::to_string(amount) + "\n";
  return write_file("balances.new", text) && rename("balances.new", "balances") == 0;
}

// Prints one statement for each account, which takes some seconds.
bool Ledger::archive_day() {
  const std::string folder = "archive/day-" + std::to_string(day_);
  std::filesystem::create_directory(folder);
  for (const auto& [account, amount] : balances_) {
    std::string text;
    for (const Entry& entry : journal_)
      if (entry.account == account) text += std::to_string(entry.amount) + "\n";
    if (!write_file(folder + "/" + account, text + "balance " + std::to_string(amount) + "\n")) return false;
    usleep(8000);  // as slow as a printer
  }
  return true;
}

bool Ledger::begin_day() {
  ++day_;
  journal_.clear();
  return ftruncate(journal_fd_, 0) == 0 && fsync(journal_fd_) == 0;
}

long Ledger::balance(const std::string& account) const {
  const auto it = balances_.find(account);
  return it == balances_.end() ? 0 : it->second;
}

namespace {

Ledger ledger;

void request(int client, char* line) {
  char account[64];
  long amount = 0;
  if (sscanf(line, "add %63s %ld", account, &amount) == 2) {
    answer(client, "%s", ledger.add({account, amount}) ? "ok" : "error");
  } else if (strcmp(line, "close") == 0) {
    answer(client, "%s", ledger.close_day() ? "ok" : "error");
  } else if (sscanf(line, "balance %63s", account) == 1) {
    answer(client, "%ld", ledger.balance(account));
  } else {
    answer(client, "error what?");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || chdir(argv[2]) != 0) {
    fprintf(stderr, "usage: ledger IP FOLDER\n");
    return 2;
  }
  ledger.recover();
  server server = {};
  server.ip = argv[1];
  server.port = 7000;
  server.request = request;
  serve(&server);
}
