// Seats that are sold at two places: the office, which knows how many are left, and a desk, which the office informs
// every 50 ms.
#include "serve.h"

#define SEATS 60
#define RESERVE 3  // seats that may be sold before the desk learns of it
#define BEAT_MS 50

static const char *other;
static int is_office;
static int sold_here;   // at this place
static int sold_there;  // office: seats sold at the desk, as the desk reports it
static int left = 0;    // desk: seats that are left, according to the office's last message

#define APART __attribute__((noinline))  // so that each is a separate function, as in a larger program

APART int seats_left(void) { return SEATS - sold_here - sold_there; }

// Called when the desk receives the office's message.
APART void heard_left(int count) { left = count; }

// The bug: this function does not check how old the office's message is.
APART int may_sell(int count) { return count > RESERVE; }

static void sell(int client) {
  sold_here++;
  answer(client, "sold");
}

static void refuse(int client) { answer(client, "none"); }

APART void at_office(int client) {
  if (seats_left() > 0) sell(client);
  else refuse(client);
}

APART void at_desk(int client) {
  if (!may_sell(left)) {
    refuse(client);
    return;
  }
  left--;
  sell(client);
}

static void request(int client, char *line) {
  if (strcmp(line, "buy") == 0) (is_office ? at_office : at_desk)(client);
  else if (strcmp(line, "sold") == 0) answer(client, "%d", sold_here);
  else answer(client, "what?");
}

static void datagram(char *text, const char *from) {
  int count;
  (void)from;
  if (is_office && sscanf(text, "sold %d", &count) == 1) sold_there = count;
  if (!is_office && sscanf(text, "left %d", &count) == 1) heard_left(count);
}

static void tick(void) {
  if (is_office) tell(other, "left %d", seats_left());
  else tell(other, "sold %d", sold_here);
}

int main(int argc, char **argv) {
  struct server s = {.ip = NULL,
                     .port = 7000,
                     .udp_port = 7001,
                     .tick_ms = BEAT_MS,
                     .request = request,
                     .datagram = datagram,
                     .tick = tick};
  if (argc != 4) {
    fprintf(stderr, "usage: seats office|desk IP OTHER-IP\n");
    return 2;
  }
  is_office = strcmp(argv[1], "office") == 0;
  s.ip = argv[2];
  other = argv[3];
  serve(&s);
}
