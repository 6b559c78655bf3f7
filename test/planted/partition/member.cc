// A replicated list: the living member with the lowest number leads, the others copy what it has; a value counts as stored
// when a majority has it. Members that are not heard of for a while are taken out of the group, and in again when they are back.
#include <string>
#include <vector>

#include "serve.h"

namespace {

constexpr int kTick = 50;
constexpr int kGone = 800;  // ms without a word

struct Member {
  std::string ip;
  int64_t heard_ms = 0;
  size_t stored = 0;  // of our list, as far as we know
};

struct Waiting {
  int client;
  size_t place;
};

std::vector<Member> members;
size_t me;
std::vector<std::string> list;
std::vector<Waiting> waiting;
size_t led_by = SIZE_MAX;

bool alive(size_t i) { return i == me || now_ms() - members[i].heard_ms < kGone; }

size_t leader() {
  for (size_t i = 0; i < members.size(); ++i)
    if (alive(i)) return i;
  return me;
}

// The bug: a majority of those that are left is no majority.
size_t majority() {
  size_t living = 0;
  for (size_t i = 0; i < members.size(); ++i) living += alive(i) ? 1 : 0;
  return living / 2 + 1;
}

void confirm() {
  std::vector<Waiting> still;
  for (const Waiting& w : waiting) {
    size_t copies = 1;
    for (size_t i = 0; i < members.size(); ++i) copies += i != me && alive(i) && members[i].stored > w.place ? 1 : 0;
    if (copies >= majority()) answer(w.client, "ok");
    else still.push_back(w);
  }
  waiting.swap(still);
}

void copy_to(size_t i) {
  size_t end = std::min(list.size(), members[i].stored + 40);
  for (size_t place = members[i].stored; place < end; ++place)
    tell(members[i].ip.c_str(), "copy %zu %zu %s", place, list.size(), list[place].c_str());
}

void tick() {
  if (leader() != led_by) {
    led_by = leader();
    note("member %zu leads", led_by + 1);
    for (Member& member : members) member.stored = 0;
    for (const Waiting& w : waiting) answer(w.client, "error no longer leader");
    waiting.clear();
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (i == me) continue;
    tell(members[i].ip.c_str(), "alive");
    if (led_by == me && alive(i)) copy_to(i);
  }
  confirm();
}

void datagram(char* text, const char* from) {
  size_t who = 0;
  while (who < members.size() && members[who].ip != from) ++who;
  if (who == members.size()) return;
  // One that was away may have another list: it is copied anew.
  if (!alive(who)) members[who].stored = 0;
  members[who].heard_ms = now_ms();
  size_t place = 0, length = 0;
  char value[64];
  if (sscanf(text, "copy %zu %zu %63s", &place, &length, value) == 3 && who == led_by) {
    if (place <= list.size()) {
      if (place == list.size()) {
        list.push_back(value);
      } else if (list[place] != value) {
        list.resize(place);
        list.push_back(value);
      }
      if (list.size() > length) list.resize(length);
    }
    tell(from, "have %zu", list.size() > place ? place + 1 : list.size());
  } else if (sscanf(text, "have %zu", &place) == 1 && led_by == me) {
    if (place > members[who].stored) members[who].stored = place;
    confirm();
  }
}

void request(int client, char* line) {
  char value[64];
  if (sscanf(line, "put %63s", value) == 1) {
    if (led_by != me) {
      answer(client, "error member %zu leads", led_by + 1);
      return;
    }
    list.push_back(value);
    waiting.push_back({client, list.size() - 1});
    for (size_t i = 0; i < members.size(); ++i)
      if (i != me && alive(i) && members[i].stored + 1 == list.size()) copy_to(i);
    confirm();
  } else if (sscanf(line, "has %63s", value) == 1) {
    bool found = false;
    for (const std::string& one : list) found = found || one == value;
    answer(client, found ? "yes" : "no");
  } else if (strcmp(line, "state") == 0) {
    answer(client, "%zu %zu", led_by + 1, list.size());
  } else {
    answer(client, "error what?");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: member NUMBER IP,IP,...\n");
    return 2;
  }
  me = static_cast<size_t>(atoi(argv[1])) - 1;
  std::string ips = argv[2];
  for (size_t at = 0; at != std::string::npos;) {
    const size_t comma = ips.find(',', at);
    members.push_back({ips.substr(at, comma == std::string::npos ? comma : comma - at), now_ms(), 0});
    at = comma == std::string::npos ? comma : comma + 1;
  }
  if (me >= members.size()) return 2;
  server server = {};
  server.ip = members[me].ip.c_str();
  server.port = 7000;
  server.udp_port = 7100;
  server.tick_ms = kTick;
  server.request = request;
  server.datagram = datagram;
  server.tick = tick;
  serve(&server);
}
