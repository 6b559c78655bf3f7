// A mailbox: letters are added to its book. From time to time, the letters in the tray are moved to the archive (the
// cellar), and the book records that. After a crash, letters that are not archived according to the book are in the
// tray again.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "disk.h"
#include "serve.h"

class Mailbox {
 public:
  Mailbox();
  bool deliver(const std::string& letter);
  bool archive();
  bool has(const std::string& letter) const;

 private:
  File book_{"book"};
  File cellar_{"cellar"};
  std::vector<std::string> tray_;
  std::vector<std::string> archived_;
};

Mailbox::Mailbox() {
  for (const std::string& line : book_.lines()) {
    if (line == "archived") tray_.clear();
    else tray_.push_back(line);
  }
  archived_ = cellar_.lines();
  note("%zu letters in the tray, %zu in the cellar", tray_.size(), archived_.size());
}

bool Mailbox::deliver(const std::string& letter) {
  if (!book_.append(letter + "\n")) return false;
  tray_.push_back(letter);
  return true;
}

// The bug: the book records that the letters are in the cellar before they are written there.
bool Mailbox::archive() {
  if (!book_.append("archived\n")) return false;
  // Sorts the letters alphabetically, by a slow method.
  std::string bundle;
  for (int again = 0; again < 200; ++again) {
    std::vector<std::string> sorted = tray_;
    for (std::size_t i = 0; i < sorted.size(); ++i)
      for (std::size_t k = 0; k + 1 < sorted.size(); ++k)
        if (sorted[k + 1] < sorted[k]) std::swap(sorted[k], sorted[k + 1]);
    bundle.clear();
    for (const std::string& letter : sorted) bundle += letter + "\n";
  }
  if (!cellar_.append(bundle)) return false;
  archived_.insert(archived_.end(), tray_.begin(), tray_.end());
  tray_.clear();
  return true;
}

bool Mailbox::has(const std::string& letter) const {
  return std::find(tray_.begin(), tray_.end(), letter) != tray_.end() ||
         std::find(archived_.begin(), archived_.end(), letter) != archived_.end();
}

static std::unique_ptr<Mailbox> mailbox;

static void request(int client, char* line) {
  const std::string text = line;
  if (text.starts_with("deliver ")) answer(client, "%s", mailbox->deliver(text.substr(8)) ? "ok" : "error");
  else if (text.starts_with("has ")) answer(client, "%s", mailbox->has(text.substr(4)) ? "yes" : "no");
  else if (text == "archive") answer(client, "%s", mailbox->archive() ? "ok" : "error");
  else answer(client, "error what?");
}

int main(int argc, char** argv) {
  if (argc != 3 || chdir(argv[2]) != 0) {
    fprintf(stderr, "usage: mailbox IP FOLDER\n");
    return 2;
  }
  mailbox = std::make_unique<Mailbox>();
  server server = {};
  server.ip = argv[1];
  server.port = 7000;
  server.request = request;
  serve(&server);
}
