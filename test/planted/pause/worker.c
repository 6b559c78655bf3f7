// A worker of the batch system. It collects a batch; when it has the lease, it takes the number, merges the batch into
// the number, and puts the number back.
#include "serve.h"

#define COLLECT_MS 700
#define MERGE_MS 200  // well within a lease of 600 ms

static int lock = -1;

static int ask(const char *line, char *reply, size_t size) {
  size_t length = 0;
  if (send(lock, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line)) return -1;
  while (length < size - 1) {
    ssize_t got = recv(lock, reply + length, size - 1 - length, 0);
    if (got <= 0) return -1;
    length += (size_t)got;
    if (reply[length - 1] != '\n') continue;
    reply[length - 1] = '\0';
    return 0;
  }
  return -1;
}

static void spend(int ms) {
  for (int i = 0; i < ms / 10; i++) usleep(10000);
}

int take_lease(const char *name) {
  char line[64], reply[64];
  snprintf(line, sizeof line, "acquire %s\n", name);
  if (ask(line, reply, sizeof reply) != 0 || strcmp(reply, "yours") != 0) return -1;
  note("has the lease");
  return 0;
}

long merge(long number) {
  spend(MERGE_MS);
  return number + 1;
}

// Returns 0 if the number was put back.
int finish_batch(const char *name) {
  char line[64], reply[64];
  if (ask("get\n", reply, sizeof reply) != 0) return -1;
  long number = merge(atol(reply));
  // The bug: nothing checks whether the lease is still held. A merge takes a third of a lease, but a pause may come.
  snprintf(line, sizeof line, "set %ld\n", number);
  if (ask(line, reply, sizeof reply) != 0) return -1;
  snprintf(line, sizeof line, "release %s\n", name);
  if (ask(line, reply, sizeof reply) != 0) return -1;
  note("batch %ld done", number);
  return 0;
}

void collect(void) { spend(COLLECT_MS); }

int main(int argc, char **argv) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7000)};
  if (argc != 3 || inet_pton(AF_INET, argv[2], &at.sin_addr) != 1) {
    fprintf(stderr, "usage: worker NAME LOCK-IP\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  note("%s begins", argv[1]);
  for (int collected = 0;;) {
    if (lock < 0) {
      lock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(lock, (struct sockaddr *)&at, sizeof at) != 0) {
        close(lock);
        lock = -1;
      }
    }
    if (!collected) collect();
    collected = 1;
    if (lock >= 0 && take_lease(argv[1]) == 0 && finish_batch(argv[1]) == 0) collected = 0;
    else usleep(30000);
  }
}
