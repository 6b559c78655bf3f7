// A replicated list: the living member with the lowest number leads, and the others copy its list; a value counts as
// stored when a majority has it. Members that send no message for a while are removed from the group, and added again
// when they are back.
#include "group.h"

namespace {

constexpr int kGone = 800;  // a member is gone after this many ms without a message

std::vector<int64_t> heard_ms;  // when each member last sent a message

bool alive(size_t i) { return i == me || now_ms() - heard_ms[i] < kGone; }

size_t leader() {
  for (size_t i = 0; i < members.size(); ++i)
    if (alive(i)) return i;
  return me;
}

// The bug: a majority of the remaining members need not be a majority of the group.
size_t majority() {
  size_t living = 0;
  for (size_t i = 0; i < members.size(); ++i) living += alive(i) ? 1 : 0;
  return living / 2 + 1;
}

bool stored(size_t place) {
  size_t copies = 1;
  for (size_t i = 0; i < members.size(); ++i) copies += i != me && alive(i) && members[i].stored > place ? 1 : 0;
  return copies >= majority();
}

void tick() {
  if (leader() != led_by) {
    led_by = leader();
    note("member %zu leads", led_by + 1);
    forget_copies("no longer leader");
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (i == me) continue;
    tell(members[i].ip.c_str(), "alive");
    if (led_by == me && alive(i)) copy_to(members[i], "copy");
  }
  confirm(stored);
}

void datagram(char* text, const char* from) {
  const size_t who = member_at(from);
  if (who == members.size()) return;
  // A member that was away may have a different list, so the whole list is copied to it again.
  if (!alive(who)) members[who].stored = 0;
  heard_ms[who] = now_ms();
  size_t place = 0, length = 0;
  char value[64];
  if (sscanf(text, "copy %zu %zu %63s", &place, &length, value) == 3 && who == led_by) {
    tell(from, "have %zu", take_copy(place, length, value));
  } else if (sscanf(text, "have %zu", &place) == 1 && led_by == me) {
    if (place > members[who].stored) members[who].stored = place;
    confirm(stored);
  }
}

void request(int client, char* line) {
  char value[64];
  if (sscanf(line, "put %63s", value) == 1) {
    if (led_by != me) {
      answer(client, "error member %zu leads", led_by + 1);
      return;
    }
    append(client, value);
    for (size_t i = 0; i < members.size(); ++i)
      if (i != me && alive(i) && members[i].stored + 1 == list.size()) copy_to(members[i], "copy");
    confirm(stored);
  } else if (sscanf(line, "has %63s", value) == 1) {
    answer(client, "%s", has(value));
  } else if (strcmp(line, "state") == 0) {
    answer(client, "%zu %zu", led_by + 1, list.size());
  } else {
    answer(client, "error what?");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!join(argc, argv)) return 2;
  heard_ms.assign(members.size(), now_ms());
  serve_members(request, datagram, tick);
}
