// A journal of orders. An entry that could not be written is written again a moment later, at the same place. Every
// sixth entry closes a group: a mark with the group's checksum is written in front of that entry.
#include "serve.h"

#define GROUP 6
#define ENTRY 64  // bytes
#define TRIES 40
#define MOST 1024

static int file = -1;
static off_t end_of_journal;
static char orders[MOST][ENTRY];
static int count;

// Writes one record at the journal's end. If this fails, it pauses and tries again, so that a failing disk can recover.
static int put_record(const char *record) {
  for (int attempt = 0; attempt < TRIES; attempt++) {
    if (pwrite(file, record, ENTRY, end_of_journal) == ENTRY && fdatasync(file) == 0) {
      end_of_journal += ENTRY;
      return 0;
    }
    note("journal: %s, trying again", strerror(errno));
    usleep(20000);
  }
  return -1;
}

static unsigned sum_of(const char *text) {
  unsigned sum = 5381;
  while (*text) sum = sum * 33 + (unsigned char)*text++;
  return sum;
}

// Writes the mark and the entry after it by one call.
static int put_group_end(const char *mark, const char *record) {
  char both[2 * ENTRY];
  memcpy(both, mark, ENTRY);
  memcpy(both + ENTRY, record, ENTRY);
  off_t at = end_of_journal;
  end_of_journal += 2 * ENTRY;
  // The bug: the second attempt writes behind the place of the first one, and leaves a gap.
  for (int attempt = 0; attempt < TRIES; attempt++, at = end_of_journal - ENTRY) {
    if (pwrite(file, both, sizeof both, at) == (ssize_t)sizeof both && fdatasync(file) == 0) {
      end_of_journal = at + (off_t)sizeof both;
      return 0;
    }
    note("journal: %s at the end of a group, trying again", strerror(errno));
    usleep(20000);
  }
  return -1;
}

static int add(const char *text) {
  char record[ENTRY] = "", mark[ENTRY] = "";
  if (count == MOST || strlen(text) > ENTRY - 16) {
    errno = EFBIG;
    return -1;
  }
  snprintf(record, sizeof record, "order %s", text);
  int bad;
  if (count % GROUP == GROUP - 1) {
    snprintf(mark, sizeof mark, "group %u", sum_of(record));
    bad = put_group_end(mark, record);
  } else {
    bad = put_record(record);
  }
  if (bad == 0) memcpy(orders[count++], record, ENTRY);
  return bad;
}

// Reads up to the first invalid record.
static void recover(void) {
  char record[ENTRY + 1] = "";
  while (count < MOST && pread(file, record, ENTRY, end_of_journal) == ENTRY) {
    if (strncmp(record, "order ", 6) == 0) memcpy(orders[count++], record, ENTRY);
    else if (strncmp(record, "group ", 6) != 0) break;
    end_of_journal += ENTRY;
  }
  if (ftruncate(file, end_of_journal) != 0) perror("journal");
  note("%d orders", count);
}

static void request(int client, char *line) {
  char wanted[ENTRY] = "";
  if (strncmp(line, "add ", 4) == 0) {
    if (add(line + 4) == 0) answer(client, "ok");
    else answer(client, "error %s", strerror(errno));
  } else if (strncmp(line, "has ", 4) == 0 && strlen(line) < ENTRY) {
    snprintf(wanted, sizeof wanted, "order %.50s", line + 4);
    int i = 0;
    while (i < count && strcmp(orders[i], wanted) != 0) i++;
    answer(client, "%s", i < count ? "yes" : "no");
  } else {
    answer(client, "error what?");
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: journal IP FILE\n");
    return 2;
  }
  signal(SIGXFSZ, SIG_IGN);
  file = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) {
    perror(argv[2]);
    return 1;
  }
  recover();
  struct server server = {.ip = argv[1], .port = 7000, .request = request};
  serve(&server);
}
