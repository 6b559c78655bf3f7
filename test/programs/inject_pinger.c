/* Sends bytes to an echo server: inject_pinger MODE HOST PORT TIMEOUT_MS [SOURCE [DESCRIPTOR]]. HOST and SOURCE may be
 * IPv6
 * addresses. Exits with 0 if the mode succeeded, with 1 if it did not in time, and with 3 if the other side refused or
 * reset the connection. Modes:
 *   tcp, udp    one byte must come back
 *   send        the kernel must accept one datagram
 *   stream      sends bytes repeatedly over one connection, which must last until the timeout; if DESCRIPTOR is given
 *               (then SOURCE may be "-": any), writes a byte to it when the first byte has come back
 *   flood       sends datagrams as fast as it can, until the timeout */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int ready(int fd, short events, int limit) {
  struct pollfd one = {fd, events, 0};
  return poll(&one, 1, limit) == 1;
}

static int refusal(int err) { return err == ECONNREFUSED || err == ECONNRESET ? 3 : 1; }

static socklen_t address(const char* host, int port, struct sockaddr_in6* to) {
  struct sockaddr_in* four = (struct sockaddr_in*)to;
  memset(to, 0, sizeof *to);
  if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons((unsigned short)port);
    return sizeof *four;
  }
  if (inet_pton(AF_INET6, host, &to->sin6_addr) != 1) exit(2);
  to->sin6_family = AF_INET6;
  to->sin6_port = htons((unsigned short)port);
  return sizeof *to;
}

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  int stream = strcmp(argv[1], "stream") == 0, tcp = stream || strcmp(argv[1], "tcp") == 0,
      only_send = strcmp(argv[1], "send") == 0;
  int limit = argc > 4 ? atoi(argv[4]) : 1000, err = 0, in_use = argc > 6 ? atoi(argv[6]) : -1,
      flood = strcmp(argv[1], "flood") == 0;
  socklen_t size = sizeof err;
  struct sockaddr_in6 to, from;
  socklen_t to_size = address(argv[2], atoi(argv[3]), &to);
  int fd = socket(to.sin6_family, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK, 0);
  if (argc > 5 && strcmp(argv[5], "-") != 0 && bind(fd, (struct sockaddr*)&from, address(argv[5], 0, &from)) != 0)
    return 2;
  if (connect(fd, (struct sockaddr*)&to, to_size) != 0 && errno != EINPROGRESS) return refusal(errno);
  if (tcp) {
    if (!ready(fd, POLLOUT, limit)) return 1;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) != 0 || err != 0) return refusal(err);
  }
  for (long end = now_ms() + limit;;) {
    char byte = 'x';
    while (flood && now_ms() < end) (void)!send(fd, &byte, 1, MSG_NOSIGNAL);
    if (flood) return 0;
    if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1) return refusal(errno);
    if (only_send) return 0;
    if (!ready(fd, POLLIN, limit)) return 1;
    ssize_t got = recv(fd, &byte, 1, 0);
    if (got == 0) return 1;
    if (got < 0) return refusal(errno);
    if (in_use >= 0 && write(in_use, &byte, 1) == 1) {
      close(in_use);
      in_use = -1;
    }
    if (!stream || now_ms() > end) return 0;
    usleep(10000);
  }
}
