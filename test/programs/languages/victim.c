/* Calls a function five times that reads a byte of a file and prints the result. The other victims in this folder do
 * the same in other languages. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef SHARED_STEP
void victim_step(int fd, int n);
#else
#ifdef SHARED_LIBRARY
__attribute__((visibility("default")))
#endif
__attribute__((noinline)) void
victim_step(int fd, int n) {
  char byte, line[64];
  int size = read(fd, &byte, 1) < 0 ? snprintf(line, sizeof line, "read %d = %s\n", n, strerror(errno))
                                    : snprintf(line, sizeof line, "read %d = ok\n", n);
  if (write(1, line, (size_t)size) != size) _exit(1);
}
#endif
#ifndef SHARED_LIBRARY
int main(int argc, char** argv) {
  if (argc < 3) return 2;
  while (access(argv[2], F_OK) != 0) usleep(2000);
  int fd = open(argv[1], O_RDONLY);
  for (int n = 1; n <= 5; n++) victim_step(fd, n);
  if (write(1, "done\n", 5) != 5) return 1;
  for (;;) pause();
}
#endif
