// A small message store. Messages are stored in segments of PER_SEGMENT messages. After each start, the first message
// begins a new epoch, and each segment names its epoch. Segments of a later epoch than that in meta/EPOCH are
// considered leftovers of an interrupted restore, and are removed at the next start.
#include <dirent.h>
#include <sys/stat.h>

#include "serve.h"

#define PER_SEGMENT 16
#define MOST 4096

static char *messages[MOST];
static int count;
static int epoch, begun;
static int segment = -1, in_segment, segment_number;

static void fatal(const char *what) {
  perror(what);
  exit(1);
}

static int write_epoch(void) {
  char text[32];
  int size = snprintf(text, sizeof text, "%d\n", epoch);
  int fd = open("meta/EPOCH.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return -1;
  int bad = write(fd, text, (size_t)size) != size || fsync(fd) != 0 ? errno : 0;
  close(fd);
  if (bad == 0 && rename("meta/EPOCH.new", "meta/EPOCH") != 0) bad = errno;
  errno = bad;
  return bad ? -1 : 0;
}

static void begin_epoch(void) {
  begun = 1;
  epoch++;
  // The bug: an epoch that could not be saved is used nevertheless. After the next start, it will be unknown.
  if (write_epoch() != 0) note("warning: epoch %d not saved: %s", epoch, strerror(errno));
}

static int roll(void) {
  char path[64];
  if (!begun) begin_epoch();
  snprintf(path, sizeof path, "segments/%06d.%d", segment_number + 1, epoch);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return -1;
  if (segment >= 0) close(segment);
  segment = fd;
  segment_number++;
  in_segment = 0;
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
  while (count < MOST && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    messages[count++] = strdup(line);
  }
  fclose(file);
}

static void recover(void) {
  char path[300];
  if ((mkdir("meta", 0755) != 0 && errno != EEXIST) || (mkdir("segments", 0755) != 0 && errno != EEXIST))
    fatal("cannot make folders");
  FILE *file = fopen("meta/EPOCH", "re");
  if (file == NULL && errno != ENOENT) fatal("meta/EPOCH");
  if (file != NULL && fscanf(file, "%d", &epoch) != 1) fatal("meta/EPOCH is damaged");
  if (file != NULL) fclose(file);
  DIR *folder = opendir("segments");
  if (folder == NULL) fatal("segments");
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    int number, of_epoch;
    if (sscanf(entry->d_name, "%6d.%d", &number, &of_epoch) != 2) continue;
    snprintf(path, sizeof path, "segments/%s", entry->d_name);
    if (of_epoch <= epoch) {
      load(path);
    } else if (unlink(path) == 0) {
      note("removed leftover segment %s", entry->d_name);
    }
    if (number > segment_number) segment_number = number;
  }
  closedir(folder);
  note("epoch %d: %d messages", epoch, count);
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
