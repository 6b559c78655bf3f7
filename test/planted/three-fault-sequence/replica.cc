// A replicated list without disks: three replicas in memory; a value counts as stored when two have it. A replica that
// receives nothing from the leader for a while asks the others for their votes. A replica votes for such a candidate if
// its own list is not longer than the candidate's list.
#include "group.h"

namespace {

constexpr int kPatience = 500;  // replica i asks for votes after this time (ms) + 150 ms * i without the leader

int view, promised;
int64_t heard_ms;
int votes, candidate_view;

void to_all(const std::string& text) {
  for (size_t i = 0; i < members.size(); ++i)
    if (i != me) tell(members[i].ip.c_str(), "%s", text.c_str());
}

bool stored(size_t place) {
  size_t copies = 1;
  for (size_t i = 0; i < members.size(); ++i) copies += i != me && members[i].stored > place ? 1 : 0;
  return copies * 2 > members.size();
}

void copy_view_to(size_t i) { copy_to(members[i], "copy " + std::to_string(view)); }

void led_by_other_than_before(size_t leader) {
  led_by = leader;
  candidate_view = 0;
  forget_copies("the leader changed");
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
    for (size_t i = 0; i < members.size(); ++i)
      if (i != me) copy_view_to(i);
    confirm(stored);
  } else if (now_ms() - heard_ms > kPatience + 150 * static_cast<int>(me)) {
    stand_for_election();
  }
}

void datagram(char* text, const char* from) {
  const size_t who = member_at(from);
  if (who == members.size()) return;
  int its_view = 0;
  size_t place = 0, length = 0;
  char value[64];
  if (sscanf(text, "elect %d %zu", &its_view, &length) == 2) {
    // The bug: a replica that was just started has an empty list, does not know what it promised before the restart,
    // and therefore votes for any candidate.
    if (its_view > view && its_view > promised && length >= list.size()) {
      promised = its_view;
      heard_ms = now_ms();
      led_by_other_than_before(SIZE_MAX);
      tell(from, "agreed %d", its_view);
    }
  } else if (sscanf(text, "agreed %d", &its_view) == 1) {
    if (its_view == candidate_view && ++votes * 2 > static_cast<int>(members.size())) follow(its_view, me);
  } else if (sscanf(text, "leads %d %zu", &its_view, &length) == 2 && its_view >= view) {
    follow(its_view, who);
    heard_ms = now_ms();
    if (list.empty() && length > 0) tell(from, "have %d 0", view);  // just started: asks for the whole list
  } else if (sscanf(text, "copy %d %zu %zu %63s", &its_view, &place, &length, value) == 4 && its_view == view &&
             who == led_by) {
    tell(from, "have %d %zu", view, take_copy(place, length, value));
  } else if (sscanf(text, "have %d %zu", &its_view, &place) == 2 && its_view == view && led_by == me) {
    members[who].stored = std::max(members[who].stored, place);
    if (place == 0) members[who].stored = 0;
    confirm(stored);
  }
}

void request(int client, char* line) {
  char value[64];
  if (sscanf(line, "put %63s", value) == 1) {
    if (led_by != me) {
      answer(client, "error not the leader");
      return;
    }
    append(client, value);
    for (size_t i = 0; i < members.size(); ++i)
      if (i != me && members[i].stored + 1 == list.size()) copy_view_to(i);
    confirm(stored);
  } else if (sscanf(line, "has %63s", value) == 1) {
    answer(client, "%s", has(value));
  } else if (strcmp(line, "state") == 0) {
    answer(client, "%d %zu %zu", view, led_by + 1, list.size());
  } else {
    answer(client, "error what?");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!join(argc, argv)) return 2;
  heard_ms = now_ms();
  serve_members(request, datagram, tick);
}
