// A replicated list without disks: three replicas in memory, a value counts as stored when two have it. Who does not hear
// the leader for a while asks the others to be the next one; a replica agrees to who has at least as much as it has itself.
#include <algorithm>
#include <string>
#include <vector>

#include "serve.h"

namespace {

constexpr int kTick = 50;
constexpr int kPatience = 500;  // ms without the leader, and a little more for each number

struct Replica {
  std::string ip;
  size_t stored = 0;  // of our list, as far as we know
};

struct Waiting {
  int client;
  size_t place;
};

std::vector<Replica> replicas;
size_t me;
std::vector<std::string> list;
std::vector<Waiting> waiting;
int view, promised;
size_t led_by = SIZE_MAX;
int64_t heard_ms;
int votes, candidate_view;

void to_all(const std::string& text) {
  for (size_t i = 0; i < replicas.size(); ++i)
    if (i != me) tell(replicas[i].ip.c_str(), "%s", text.c_str());
}

void confirm() {
  std::vector<Waiting> still;
  for (const Waiting& w : waiting) {
    size_t copies = 1;
    for (size_t i = 0; i < replicas.size(); ++i) copies += i != me && replicas[i].stored > w.place ? 1 : 0;
    if (copies * 2 > replicas.size()) answer(w.client, "ok");
    else still.push_back(w);
  }
  waiting.swap(still);
}

void copy_to(size_t i) {
  const size_t end = std::min(list.size(), replicas[i].stored + 40);
  for (size_t place = replicas[i].stored; place < end; ++place)
    tell(replicas[i].ip.c_str(), "copy %d %zu %zu %s", view, place, list.size(), list[place].c_str());
}

void led_by_other_than_before(size_t leader) {
  led_by = leader;
  candidate_view = 0;
  for (Replica& replica : replicas) replica.stored = 0;
  for (const Waiting& w : waiting) answer(w.client, "error the leader changed");
  waiting.clear();
}

void follow(int new_view, size_t leader) {
  if (new_view < view || (new_view == view && leader == led_by)) return;
  note("view %d: replica %zu leads", new_view, leader + 1);
  view = new_view;
  promised = std::max(promised, new_view);
  led_by_other_than_before(leader);
}

void stand_for_election() {
  candidate_view = std::max({view, promised, candidate_view}) + 1;
  votes = 1;
  heard_ms = now_ms();
  to_all("elect " + std::to_string(candidate_view) + " " + std::to_string(list.size()));
}

void tick() {
  if (led_by == me) {
    to_all("leads " + std::to_string(view) + " " + std::to_string(list.size()));
    for (size_t i = 0; i < replicas.size(); ++i)
      if (i != me) copy_to(i);
    confirm();
  } else if (now_ms() - heard_ms > kPatience + 150 * static_cast<int>(me)) {
    stand_for_election();
  }
}

void datagram(char* text, const char* from) {
  size_t who = 0;
  while (who < replicas.size() && replicas[who].ip != from) ++who;
  if (who == replicas.size()) return;
  int its_view = 0;
  size_t place = 0, length = 0;
  char value[64];
  if (sscanf(text, "elect %d %zu", &its_view, &length) == 2) {
    // The bug: one that was just started has nothing, knows nothing of what the others were promised by it, and agrees to anyone.
    if (its_view > view && its_view > promised && length >= list.size()) {
      promised = its_view;
      heard_ms = now_ms();
      led_by_other_than_before(SIZE_MAX);
      tell(from, "agreed %d", its_view);
    }
  } else if (sscanf(text, "agreed %d", &its_view) == 1) {
    if (its_view == candidate_view && ++votes * 2 > static_cast<int>(replicas.size())) follow(its_view, me);
  } else if (sscanf(text, "leads %d %zu", &its_view, &length) == 2 && its_view >= view) {
    follow(its_view, who);
    heard_ms = now_ms();
    if (list.empty() && length > 0) tell(from, "have %d 0", view);  // just started: all of it, please
  } else if (sscanf(text, "copy %d %zu %zu %63s", &its_view, &place, &length, value) == 4 && its_view == view && who == led_by) {
    if (place < list.size() && list[place] != value) list.resize(place);
    if (place == list.size()) list.push_back(value);
    if (list.size() > length) list.resize(length);
    tell(from, "have %d %zu", view, std::min(list.size(), place + 1));
  } else if (sscanf(text, "have %d %zu", &its_view, &place) == 2 && its_view == view && led_by == me) {
    replicas[who].stored = std::max(replicas[who].stored, place);
    if (place == 0) replicas[who].stored = 0;
    confirm();
  }
}

void request(int client, char* line) {
  char value[64];
  if (sscanf(line, "put %63s", value) == 1) {
    if (led_by != me) {
      answer(client, "error not the leader");
      return;
    }
    list.push_back(value);
    waiting.push_back({client, list.size() - 1});
    for (size_t i = 0; i < replicas.size(); ++i)
      if (i != me && replicas[i].stored + 1 == list.size()) copy_to(i);
    confirm();
  } else if (sscanf(line, "has %63s", value) == 1) {
    answer(client, std::find(list.begin(), list.end(), value) != list.end() ? "yes" : "no");
  } else if (strcmp(line, "state") == 0) {
    answer(client, "%d %zu %zu", view, led_by + 1, list.size());
  } else {
    answer(client, "error what?");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: replica NUMBER IP,IP,IP\n");
    return 2;
  }
  me = static_cast<size_t>(atoi(argv[1])) - 1;
  const std::string ips = argv[2];
  for (size_t at = 0; at != std::string::npos;) {
    const size_t comma = ips.find(',', at);
    replicas.push_back({ips.substr(at, comma == std::string::npos ? comma : comma - at), 0});
    at = comma == std::string::npos ? comma : comma + 1;
  }
  if (me >= replicas.size()) return 2;
  heard_ms = now_ms();
  server server = {};
  server.ip = replicas[me].ip.c_str();
  server.port = 7000;
  server.udp_port = 7100;
  server.tick_ms = kTick;
  server.request = request;
  server.datagram = datagram;
  server.tick = tick;
  serve(&server);
}
