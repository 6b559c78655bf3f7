// A catalogue of collections, each saved to a separate file. A collection whose file cannot be written is saved to a
// spare place instead: one of five, chosen at random when the program starts, so that the disks wear evenly.
#include <sys/random.h>
#include <sys/stat.h>

#include "serve.h"

#define COLLECTIONS 8
#define SPARES 5
#define LOOKED_AT 2

static char titles[COLLECTIONS][64];
static unsigned spare;

static int write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return -1;
  int bad = write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) != 0 ? errno : 0;
  close(fd);
  errno = bad;
  return bad ? -1 : 0;
}

static int save(int number) {
  char path[64];
  snprintf(path, sizeof path, "catalog/collection-%d", number);
  if (write_file(path, titles[number]) == 0) return 0;
  note("collection %d: %s, saved to a spare place", number, strerror(errno));
  unlink(path);
  snprintf(path, sizeof path, "spare/%u-collection-%d", spare, number);
  return write_file(path, titles[number]);
}

static int load_file(const char *path, int number) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return -1;
  int good = fgets(titles[number], sizeof titles[number], file) != NULL;
  fclose(file);
  return good ? 0 : -1;
}

static void load(int number) {
  char path[64];
  snprintf(path, sizeof path, "catalog/collection-%d", number);
  if (load_file(path, number) == 0) return;
  // The bug: this loop looks at only two of the five spare places.
  for (int place = 0; place < LOOKED_AT; place++) {
    snprintf(path, sizeof path, "spare/%d-collection-%d", place, number);
    if (load_file(path, number) == 0) return;
  }
}

static void request(int client, char *line) {
  int number = 0, length = 0;
  if (sscanf(line, "save %d %n", &number, &length) == 1 && number >= 0 && number < COLLECTIONS &&
      strlen(line + length) < 60) {
    snprintf(titles[number], sizeof titles[number], "%s", line + length);
    answer(client, "%s", save(number) == 0 ? "ok" : "error");
  } else if (sscanf(line, "title %d", &number) == 1 && number >= 0 && number < COLLECTIONS) {
    answer(client, "%s", titles[number]);
  } else {
    answer(client, "error what?");
  }
}

int main(int argc, char **argv) {
  if (argc != 3 || chdir(argv[2]) != 0) {
    fprintf(stderr, "usage: catalog IP FOLDER\n");
    return 2;
  }
  if ((mkdir("catalog", 0755) != 0 && errno != EEXIST) || (mkdir("spare", 0755) != 0 && errno != EEXIST)) {
    perror("cannot make folders");
    return 1;
  }
  if (getrandom(&spare, sizeof spare, 0) != sizeof spare) return 1;
  spare %= SPARES;
  for (int i = 0; i < COLLECTIONS; i++) load(i);
  struct server server = {.ip = argv[1], .port = 7000, .request = request};
  serve(&server);
}
