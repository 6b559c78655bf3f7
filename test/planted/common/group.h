// The code that the planted programs with a replicated list have in common; their bugs are not in it. It has the
// members of the group, the list, how many of its entries each other member has, and the clients that wait until enough
// members have their value. The programs differ in which member leads, which members are counted for a majority, and
// when lists are copied. C++, based on serve.h.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "addresses.h"
#include "serve.h"

struct Member {
  std::string ip;
  size_t stored = 0;  // number of entries of the local list that the member is known to have
};

struct Waiting {
  int client;
  size_t place;
};

inline constexpr int kTick = 50;  // ms

inline std::vector<Member> members;
inline size_t me;
inline std::vector<std::string> list;
inline std::vector<Waiting> waiting;
inline size_t led_by = SIZE_MAX;

// Reads the command line: NUMBER IP,IP,...
inline bool join(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s NUMBER IP,IP,...\n", argv[0]);
    return false;
  }
  me = static_cast<size_t>(atoi(argv[1])) - 1;
  for (const std::string& ip : addresses_in(argv[2])) members.push_back({ip, 0});
  return me < members.size();
}

inline void serve_members(void (*request)(int, char*), void (*datagram)(char*, const char*), void (*tick)()) {
  server server = {};
  server.ip = members[me].ip.c_str();
  server.port = kPort;
  server.udp_port = 7100;
  server.tick_ms = kTick;
  server.request = request;
  server.datagram = datagram;
  server.tick = tick;
  serve(&server);
}

// The index of the member with this address. If there is none, members.size().
inline size_t member_at(const char* ip) {
  size_t who = 0;
  while (who < members.size() && members[who].ip != ip) ++who;
  return who;
}

// Appends the value. The client waits until enough members have it.
inline void append(int client, const char* value) {
  list.push_back(value);
  waiting.push_back({client, list.size() - 1});
}

inline void confirm(bool (*stored)(size_t place)) {
  std::vector<Waiting> still;
  for (const Waiting& w : waiting) {
    if (stored(w.place)) answer(w.client, "ok");
    else still.push_back(w);
  }
  waiting.swap(still);
}

// Forgets which entries of this list the members have, and answers all waiting clients with an error.
inline void forget_copies(const char* why) {
  for (Member& member : members) member.stored = 0;
  for (const Waiting& w : waiting) answer(w.client, "error %s", why);
  waiting.clear();
}

// Sends the member some of the entries that it lacks, as messages "VERB PLACE LENGTH VALUE", see take_copy().
inline void copy_to(const Member& member, const std::string& verb) {
  const size_t end = std::min(list.size(), member.stored + 40);
  for (size_t place = member.stored; place < end; ++place)
    tell(member.ip.c_str(), "%s %zu %zu %s", verb.c_str(), place, list.size(), list[place].c_str());
}

// Stores an entry of the leader's list. Returns the number of entries up to which this list now equals the leader's.
inline size_t take_copy(size_t place, size_t length, const char* value) {
  if (place < list.size() && list[place] != value) list.resize(place);
  if (place == list.size()) list.push_back(value);
  if (list.size() > length) list.resize(length);
  return std::min(list.size(), place + 1);
}

inline const char* has(const char* value) {
  return std::find(list.begin(), list.end(), value) != list.end() ? "yes" : "no";
}
