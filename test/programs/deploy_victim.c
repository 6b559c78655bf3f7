// A minimal node or client for the deployment tests. The first argument selects what it does.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static struct sockaddr_in address_of(const char* ip, const char* port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
  if (inet_pton(AF_INET, ip, &address.sin_addr) != 1) exit(90);
  return address;
}

// Answers each connection with the node's name.
static int serve(const char* port) {
  const char* ip = getenv("ROSE_IP");
  const char* name = getenv("ROSE_NODE");
  struct sockaddr_in address = address_of(ip, port);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 16) != 0) {
    fprintf(stderr, "cannot listen at %s:%s: %s\n", ip, port, strerror(errno));
    return 91;
  }
  printf("serving as %s\n", name);
  fflush(stdout);
  for (;;) {
    int connection = accept(listener, NULL, NULL);
    if (connection < 0) continue;
    if (send(connection, name, strlen(name), MSG_NOSIGNAL) < 0) perror("send");
    close(connection);
  }
}

// Prints the server's answer. Exits with 0 if there was one.
static int ask(const char* ip, const char* port) {
  struct sockaddr_in address = address_of(ip, port);
  struct timeval limit = {.tv_sec = 3};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  char answer[128];
  if (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) return 1;
  ssize_t n = recv(fd, answer, sizeof answer - 1, 0);
  if (n <= 0) return 2;
  answer[n] = 0;
  printf("%s:%s is %s\n", ip, port, answer);
  return 0;
}

static void rest(void) {
  for (;;) pause();
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "serve") == 0 && argc == 3) return serve(argv[2]);
  if (strcmp(mode, "ask") == 0 && argc == 4) return ask(argv[2], argv[3]);
  if (strcmp(mode, "relay") == 0 && argc == 4) {  // each process forks the next and ends; the last one serves
    for (int left = atoi(argv[3]); left > 0; --left)
      if (fork() != 0) _exit(0);
    return serve(argv[2]);
  }
  if (strcmp(mode, "daemon") == 0 && argc == 3) {
    if (fork() != 0) return 0;
    setsid();
    if (fork() != 0) _exit(0);
    return serve(argv[2]);
  }
  if (strcmp(mode, "tree") == 0) {  // 1 + 2 + 4 processes, each in a separate session
    for (int level = 0; level < 2; ++level) {
      int children = 0;
      while (children < 2 && fork() != 0) ++children;
      if (children == 2) break;
      setsid();
    }
    printf("branch\n");
    fflush(stdout);
    rest();
  }
  if (strcmp(mode, "stubborn") == 0) {
    signal(SIGTERM, SIG_IGN);
    printf("stubborn\n");
    fflush(stdout);
    rest();
  }
  if (strcmp(mode, "open") == 0 && argc == 3) {
    int fd = open(argv[2], O_RDONLY);
    printf("open: %s\n", fd < 0 ? strerror(errno) : "done");
    fflush(stdout);
    rest();
  }
  if (strcmp(mode, "state") == 0) {
    // Print what the process has inherited: signals, user, capabilities, no_new_privs and descriptors.
    char line[256];
    FILE* status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status) != NULL)
      if (strncmp(line, "Sig", 3) == 0 || strncmp(line, "Cap", 3) == 0 || strncmp(line, "Uid", 3) == 0 ||
          strncmp(line, "Gid", 3) == 0 || strncmp(line, "NoNew", 5) == 0 || strncmp(line, "Groups", 6) == 0 ||
          strncmp(line, "Seccomp:", 8) == 0)
        fputs(line, stdout);
    fclose(status);
    for (int fd = 0; fd < 64; ++fd)
      if (fcntl(fd, F_GETFD) >= 0) printf("fd %d\n", fd);
    printf("session %d\n", getsid(0) == getpid());
    FILE* own = fopen("made-by-node", "w");
    printf("write: %s\n", own == NULL ? strerror(errno) : "done");
    if (own != NULL) fclose(own);
    printf("end of state\n");
    fflush(stdout);
    rest();
  }
  fprintf(stderr, "unknown mode '%s'\n", mode);
  return 92;
}
