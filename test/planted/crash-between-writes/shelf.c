// A shelf of numbered boxes with a number in each. Puts go to a journal. A checkpoint writes all boxes to their place
// and gives the index a new generation, which makes all older records of the journal invalid.
#include <stdbool.h>

#include "serve.h"

#define BOXES 4096

struct index_header {
  uint64_t generation;  // records of the journal with a lower generation are invalid
  uint64_t boxes;
  uint64_t sum;
};

struct record {
  uint64_t generation;
  uint32_t box;
  uint32_t value;
};

static uint32_t boxes[BOXES];
static uint64_t generation = 1;
static int index_fd, boxes_fd, journal_fd;

static int open_file(const char *path, int flags) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0644);
  if (fd >= 0) return fd;
  perror(path);
  exit(1);
}

void recover(void) {
  index_fd = open_file("index", 0);
  boxes_fd = open_file("boxes", 0);
  journal_fd = open_file("journal", O_APPEND);
  struct index_header header;
  if (pread(index_fd, &header, sizeof header, 0) == (ssize_t)sizeof header) generation = header.generation;
  if (pread(boxes_fd, boxes, sizeof boxes, 0) < 0) perror("boxes");
  struct record record;
  unsigned count = 0;
  for (off_t at = 0; pread(journal_fd, &record, sizeof record, at) == (ssize_t)sizeof record;
       at += (off_t)sizeof record)
    if (record.generation >= generation && record.box < BOXES) boxes[record.box] = record.value, ++count;
  note("generation %llu: %u puts since its checkpoint", (unsigned long long)generation, count);
}

bool put(uint32_t box, uint32_t value) {
  const struct record record = {generation, box, value};
  if (write(journal_fd, &record, sizeof record) != (ssize_t)sizeof record) return false;
  boxes[box] = value;
  return true;
}

// The bug: the index is written first. From then on the journal is invalid, but the boxes are not written yet.
bool checkpoint(void) {
  struct index_header header = {generation + 1, BOXES, 0};
  for (int i = 0; i < BOXES; i++) header.sum = header.sum * 31 + boxes[i];
  if (pwrite(index_fd, &header, sizeof header, 0) != (ssize_t)sizeof header) return false;
  generation = header.generation;
  // Boxes are read repeatedly before they are written, to check the memory.
  uint64_t sum = 0;
  for (int again = 0; again < 4000; again++) {
    sum = 0;
    for (int i = 0; i < BOXES; i++) sum = sum * 31 + ((volatile uint32_t *)boxes)[i];
  }
  if (sum != header.sum) return false;
  if (pwrite(boxes_fd, boxes, sizeof boxes, 0) != (ssize_t)sizeof boxes) return false;
  return ftruncate(journal_fd, 0) == 0;
}

static void request(int client, char *line) {
  unsigned box = 0, value = 0;
  if (sscanf(line, "put %u %u", &box, &value) == 2 && box < BOXES) {
    answer(client, "%s", put(box, value) ? "ok" : "error");
  } else if (sscanf(line, "get %u", &box) == 1 && box < BOXES) {
    answer(client, "%u", boxes[box]);
  } else if (strcmp(line, "checkpoint") == 0) {
    answer(client, "%s", checkpoint() ? "ok" : "error");
  } else {
    answer(client, "error what?");
  }
}

int main(int argc, char **argv) {
  if (argc != 3 || chdir(argv[2]) != 0) {
    fprintf(stderr, "usage: shelf IP FOLDER\n");
    return 2;
  }
  recover();
  const struct server server = {.ip = argv[1], .port = 7000, .request = request};
  serve(&server);
}
