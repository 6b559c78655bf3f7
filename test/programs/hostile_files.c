/* A node that exchanges the file of its descriptor while rose looks at the descriptor and duplicates it. The descriptor
 * alternates between a socket and a file of the node's own FUSE file system. The server of this file system makes
 * foreign processes wait when they close the file. Prints the pid of the server; "held" whenever the server makes a
 * process wait; and "done" after many calls, but not before a process waited or kLongest seconds have passed.
 *   hostile_files FUSE    FUSE: the device, which every user may open */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kTaken = 200, kConnects = 20000, kLongest = 40 };
static int device, file, sock;
static pid_t self;
static volatile int *held; /* not 0: the server makes a foreign process wait; in memory shared with the server */

static void answer(uint64_t id, int error, const void *data, size_t size) {
  char buffer[512];
  struct fuse_out_header head = {(uint32_t)(sizeof head + size), error, id};
  memcpy(buffer, &head, sizeof head);
  if (size > 0) memcpy(buffer + sizeof head, data, size);
  (void)!write(device, buffer, head.len);
}

static struct fuse_attr about(uint64_t inode) {
  struct fuse_attr one = {.ino = inode, .mode = inode == 1 ? S_IFDIR | 0755 : S_IFREG | 0644, .nlink = 1};
  one.uid = getuid();
  one.gid = getgid();
  return one;
}

static int is_own(uint32_t tid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%u", self, tid);
  return access(path, F_OK) == 0;
}

static void serve(void) {
  static char buffer[1 << 18];
  const struct fuse_in_header *in = (const void *)buffer;
  while (read(device, buffer, sizeof buffer) >= 0 || errno == EINTR) {
    if (in->opcode == FUSE_INIT) {
      const struct fuse_init_out out = {.major = 7, .minor = 31, .max_write = 65536};
      answer(in->unique, 0, &out, sizeof out);
    } else if (in->opcode == FUSE_LOOKUP) {
      const struct fuse_entry_out out = {.nodeid = 2, .entry_valid = 1000, .attr_valid = 1000, .attr = about(2)};
      answer(in->unique, 0, &out, sizeof out);
    } else if (in->opcode == FUSE_GETATTR) {
      const struct fuse_attr_out out = {.attr_valid = 1000, .attr = about(in->nodeid)};
      answer(in->unique, 0, &out, sizeof out);
    } else if (in->opcode == FUSE_OPEN) {
      const struct fuse_open_out out = {.fh = 1};
      answer(in->unique, 0, &out, sizeof out);
    } else if (in->opcode == FUSE_FLUSH) {
      if (is_own(in->pid)) answer(in->unique, 0, NULL, 0);
      else *held = 1, puts("held"), fflush(stdout);
    } else if (in->opcode != FUSE_FORGET && in->opcode != FUSE_INTERRUPT) {
      answer(in->unique, -ENOSYS, NULL, 0);
    }
  }
}

static void *exchange(void *unused) {
  for (;;) {
    dup2(file, kTaken);
    dup2(sock, kTaken);
    for (volatile int i = 0; i < 300; ++i);
  }
  return unused;
}

static void put(const char *path, const char *text) {
  const int fd = open(path, O_WRONLY);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) perror(path);
  close(fd);
}

int main(int argc, char **argv) {
  const struct sockaddr_in somewhere = {
      .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  char text[128];
  const unsigned uid = getuid(), gid = getgid();
  pthread_t thread;
  if (argc != 2 || unshare(CLONE_NEWUSER | CLONE_NEWNS)) return 2;
  put("/proc/self/setgroups", "deny");
  snprintf(text, sizeof text, "%u %u 1", uid, uid);
  put("/proc/self/uid_map", text);
  snprintf(text, sizeof text, "%u %u 1", gid, gid);
  put("/proc/self/gid_map", text);
  device = open(argv[1], O_RDWR | O_CLOEXEC);
  snprintf(text, sizeof text, "fd=%d,rootmode=40000,user_id=%u,group_id=%u", device, uid, gid);
  mkdir("own", 0755);
  if (device < 0 || mount("own", "own", "fuse", MS_NOSUID | MS_NODEV, text)) {
    puts("no file system");
    fflush(stdout);
  }
  /* The server is a separate process: if it is killed, its file system ends, and no process waits for it any more. */
  self = getpid();
  held = mmap(NULL, sizeof *held, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (held == MAP_FAILED) return 2;
  const pid_t server = fork();
  if (server == 0) {
    serve();
    _exit(0);
  }
  close(device);
  printf("server %d\n", server);
  file = open("own/file", O_RDONLY);
  sock = socket(AF_INET, SOCK_DGRAM, 0);
  dup2(sock, kTaken);
  puts("up");
  fflush(stdout);
  usleep(200000);
  pthread_create(&thread, NULL, exchange, NULL);
  const time_t began = time(NULL);
  for (int i = 0; i < kConnects || (!*held && time(NULL) - began < kLongest); ++i)
    connect(kTaken, (const void *)&somewhere, sizeof somewhere);
  puts("done");
  fflush(stdout);
  pause();
  return 0;
}
