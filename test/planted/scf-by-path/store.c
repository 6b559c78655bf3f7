// A small message store. Messages go to segments of PER_SEGMENT messages; for each segment there is a description in meta/.
// At the start, segments without a description are leftovers of an interrupted roll and removed.
#include <dirent.h>
#include <sys/stat.h>

#include "serve.h"

#define PER_SEGMENT 16
#define MOST 4096

static char *messages[MOST];
static int count;
static int segment = -1, in_segment;
static int segment_number;

static void fatal(const char *what) {
  perror(what);
  exit(1);
}

// The segment's description, on disk. 0 or -1 with errno.
static int describe(int number, int first) {
  char path[64], text[64];
  snprintf(path, sizeof path, "meta/%06d.meta", number);
  int size = snprintf(text, sizeof text, "segment %d first %d\n", number, first);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return -1;
  int bad = write(fd, text, (size_t)size) != size || fsync(fd) != 0 ? errno : 0;
  close(fd);
  errno = bad;
  return bad ? -1 : 0;
}

static int roll(void) {
  char path[64];
  snprintf(path, sizeof path, "segments/%06d.log", segment_number + 1);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return -1;
  if (segment >= 0) close(segment);
  segment = fd;
  segment_number++;
  in_segment = 0;
  // The bug: the segment is used although the next start will not know it.
  if (describe(segment_number, count) != 0) note("warning: description of segment %d: %s", segment_number, strerror(errno));
  return 0;
}

static int store(const char *text) {
  char line[SERVE_LINE + 2];
  if (count == MOST) {
    errno = ENOSPC;
    return -1;
  }
  if ((segment < 0 || in_segment == PER_SEGMENT) && roll() != 0) return -1;
  int size = snprintf(line, sizeof line, "%s\n", text);
  off_t end = lseek(segment, 0, SEEK_END);
  if (write(segment, line, (size_t)size) != size || fdatasync(segment) != 0) {
    int why = errno;
    if (ftruncate(segment, end) != 0) fatal("segment cannot be mended");
    errno = why;
    return -1;
  }
  messages[count++] = strdup(text);
  in_segment++;
  return 0;
}

static void load(const char *path) {
  char line[SERVE_LINE];
  FILE *file = fopen(path, "re");
  if (file == NULL) fatal(path);
  in_segment = 0;
  while (count < MOST && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    messages[count++] = strdup(line);
    in_segment++;
  }
  fclose(file);
}

// Does the segment have a sound description?
static int described(int number) {
  char path[64];
  int in_it = 0, first;
  snprintf(path, sizeof path, "meta/%06d.meta", number);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  int read = fscanf(file, "segment %d first %d", &in_it, &first);
  fclose(file);
  return read == 2 && in_it == number;
}

static void recover(void) {
  char path[64];
  int number, last = 0;
  if ((mkdir("meta", 0755) != 0 && errno != EEXIST) || (mkdir("segments", 0755) != 0 && errno != EEXIST)) fatal("cannot make folders");
  DIR *folder = opendir("segments");
  if (folder == NULL) fatal("segments");
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (sscanf(entry->d_name, "%6d.log", &number) == 1 && number > last) last = number;
  closedir(folder);
  for (number = 1; number <= last; number++) {
    snprintf(path, sizeof path, "segments/%06d.log", number);
    if (described(number)) {
      load(path);
    } else if (unlink(path) == 0) {
      note("removed leftover segment %06d", number);
    }
  }
  segment_number = last;
  note("%d messages in %d segments", count, last);
}

static void request(int client, char *line) {
  if (strncmp(line, "put ", 4) == 0) {
    if (store(line + 4) == 0) answer(client, "ok");
    else answer(client, "error %s", strerror(errno));
  } else if (strncmp(line, "has ", 4) == 0) {
    int i = 0;
    while (i < count && strcmp(messages[i], line + 4) != 0) i++;
    answer(client, "%s", i < count ? "yes" : "no");
  } else {
    answer(client, "error what?");
  }
}

int main(int argc, char **argv) {
  if (argc != 3 || chdir(argv[2]) != 0) {
    fprintf(stderr, "usage: store IP FOLDER\n");
    return 2;
  }
  recover();
  struct server server = {.ip = argv[1], .port = 7000, .request = request};
  serve(&server);
}
