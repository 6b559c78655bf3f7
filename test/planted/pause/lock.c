// The server of a small batch system: a lock, whose leases end by themselves, and a register, which holds one number.
#include "serve.h"

#define LEASE_MS 600

static char holder[32];
static int64_t ends_ms;
static long number, sets;

static void request(int client, char *line) {
  char name[32];
  long value;
  if (sscanf(line, "acquire %31s", name) == 1) {
    if (holder[0] != '\0' && strcmp(holder, name) != 0 && now_ms() < ends_ms) {
      answer(client, "held by %s", holder);
      return;
    }
    snprintf(holder, sizeof holder, "%s", name);
    ends_ms = now_ms() + LEASE_MS;
    answer(client, "yours");
  } else if (sscanf(line, "release %31s", name) == 1) {
    if (strcmp(holder, name) == 0) holder[0] = '\0';
    answer(client, "ok");
  } else if (sscanf(line, "set %ld", &value) == 1) {
    number = value;
    sets++;
    answer(client, "ok");
  } else if (strcmp(line, "get") == 0) {
    answer(client, "%ld", number);
  } else if (strcmp(line, "stats") == 0) {
    answer(client, "%ld %ld", number, sets);
  } else {
    answer(client, "error what?");
  }
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: lock IP\n");
    return 2;
  }
  struct server server = {.ip = argv[1], .port = 7000, .request = request};
  serve(&server);
}
