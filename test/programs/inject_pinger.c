/* Pings an echo server once: `inject_pinger tcp|udp HOST PORT TIMEOUT_MS`. Exit 0 when the byte came back, 1 when it
 * did not in time. `inject_pinger send HOST PORT` sends one datagram and exits 0 when the kernel took it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int ready(int fd, short events, int limit) {
  struct pollfd one = {fd, events, 0};
  return poll(&one, 1, limit) == 1;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  int tcp = strcmp(argv[1], "tcp") == 0, only_send = strcmp(argv[1], "send") == 0;
  int limit = argc > 4 ? atoi(argv[4]) : 1000;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[3]))};
  if (inet_pton(AF_INET, argv[2], &to.sin_addr) != 1) return 2;
  int fd = socket(AF_INET, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK, 0);
  if (connect(fd, (struct sockaddr*)&to, sizeof to) != 0 && errno != EINPROGRESS) return 1;
  if (tcp) {
    int err = 0;
    socklen_t size = sizeof err;
    if (!ready(fd, POLLOUT, limit)) return 1;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) != 0 || err != 0) return 1;
  }
  if (send(fd, "x", 1, MSG_NOSIGNAL) != 1) return 1;
  if (only_send) return 0;
  char byte;
  return ready(fd, POLLIN, limit) && recv(fd, &byte, 1, 0) == 1 ? 0 : 1;
}
