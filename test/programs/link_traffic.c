/* Measures what a link does to packets. HOST may be an IPv6 address; the server listens to both families.
 *   link_traffic serve PORT
 *       when no datagram has come for 0.3 s, prints how many of the last burst arrived, and how late they were; for a
 *       TCP connection, checks the values of the bytes, and prints how many arrived
 *       of TCP connections, how many bytes with the right pattern
 *   link_traffic send HOST PORT BURST COUNT GAP_US [TEXT]
 *       sends datagrams that contain TEXT
 *   link_traffic stream HOST PORT BYTES
 *       sends bytes over a connection, and prints how long that took */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 200000, SIZE = 200 };

struct datagram {
  uint32_t burst, number;
  int64_t sent_ns;
  char text[SIZE - 16];
};

static int64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static socklen_t address(const char* host, int port, struct sockaddr_in6* to) {
  struct sockaddr_in* four = (struct sockaddr_in*)to;
  memset(to, 0, sizeof *to);
  if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons((uint16_t)port);
    return sizeof *four;
  }
  if (inet_pton(AF_INET6, host, &to->sin6_addr) != 1) exit(2);
  to->sin6_family = AF_INET6;
  to->sin6_port = htons((uint16_t)port);
  return sizeof *to;
}

static int by_size(const void* a, const void* b) {
  const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return x < y ? -1 : x > y;
}

static int listener(int type, int port) {
  int fd = socket(AF_INET6, type, 0), off = 0, on = 1, room = 8 << 20;
  struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  if (bind(fd, (struct sockaddr*)&any, sizeof any) != 0) exit(2);
  return fd;
}

/* Uses the kernel's time of arrival, because delays in scheduling this program must not count as delays of the link. */
static ssize_t take_datagram(int fd, struct datagram* one, int64_t* at_ns) {
  union {
    struct cmsghdr head;
    char bytes[64];
  } control;
  struct iovec part = {one, sizeof *one};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t size = recvmsg(fd, &message, 0);
  *at_ns = now_ns(CLOCK_REALTIME);
  for (struct cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_TIMESTAMPNS) continue;
    struct timespec at;
    memcpy(&at, CMSG_DATA(head), sizeof at);
    *at_ns = at.tv_sec * 1000000000LL + at.tv_nsec;
  }
  return size;
}

static void* sink(void* data) {
  static int64_t late[MOST];
  static unsigned char seen[MOST];
  int fd = (int)(intptr_t)data, on = 1;
  setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  unsigned got = 0, twice = 0, behind = 0, wrong = 0, burst = 0, next = 0;
  for (;;) {
    struct datagram one;
    int64_t at;
    struct pollfd ready = {fd, POLLIN, 0};
    if (poll(&ready, 1, got ? 300 : -1) == 0) {
      qsort(late, got, sizeof late[0], by_size);
      printf("burst %u: got %u twice %u behind %u wrong %u us min %ld p05 %ld p50 %ld p95 %ld p99 %ld max %ld\n", burst,
             got - twice, twice, behind, wrong, (long)late[0] / 1000, (long)late[got / 20] / 1000,
             (long)late[got / 2] / 1000, (long)late[got * 95ul / 100] / 1000, (long)late[got * 99ul / 100] / 1000,
             (long)late[got - 1] / 1000);
      fflush(stdout);
      continue;
    }
    ssize_t size = take_datagram(fd, &one, &at);
    if (size != sizeof one || one.number >= MOST || got >= MOST) {
      wrong++;
      continue;
    }
    if (one.burst < burst) continue;
    if (one.burst > burst) {
      burst = one.burst;
      got = twice = behind = wrong = next = 0;
      memset(seen, 0, sizeof seen);
    }
    late[got++] = at - one.sent_ns;
    if (seen[one.number]++) twice++;
    if (one.number < next) behind++;
    if (one.number >= next) next = one.number + 1;
  }
}

static int send_burst(char** argv, int argc) {
  struct sockaddr_in6 to;
  socklen_t size = address(argv[2], atoi(argv[3]), &to);
  int fd = socket(to.sin6_family, SOCK_DGRAM, 0);
  struct datagram one = {.burst = (uint32_t)atoi(argv[4])};
  int count = atoi(argv[5]);
  int64_t gap = atoll(argv[6]) * 1000, next = now_ns(CLOCK_MONOTONIC);
  if (argc > 7) snprintf(one.text, sizeof one.text, "%s", argv[7]);
  for (int i = 0; i < count; i++, next += gap) {
    struct timespec until = {next / 1000000000, next % 1000000000};
    if (gap) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
    one.number = (uint32_t)i;
    one.sent_ns = now_ns(CLOCK_REALTIME);
    if (sendto(fd, &one, sizeof one, 0, (struct sockaddr*)&to, size) != sizeof one) return 1;
  }
  return 0;
}

static void* take(void* data) {
  int fd = (int)(intptr_t)data;
  static __thread unsigned char bytes[65536];
  long got = 0;
  for (;;) {
    ssize_t size = recv(fd, bytes, sizeof bytes, 0);
    if (size <= 0) break;
    for (ssize_t i = 0; i < size; i++)
      if (bytes[i] != (unsigned char)((got + i) * 7)) {
        printf("wrong byte at %ld\n", got + (long)i);
        fflush(stdout);
        exit(1);
      }
    got += size;
  }
  printf("received %ld\n", got);
  fflush(stdout);
  send(fd, "k", 1, MSG_NOSIGNAL);
  close(fd);
  return 0;
}

static int serve(int port) {
  int fd = listener(SOCK_STREAM, port), datagrams = listener(SOCK_DGRAM, port);
  pthread_t thread;
  listen(fd, 64);
  if (pthread_create(&thread, 0, sink, (void*)(intptr_t)datagrams) != 0) return 2;
  puts("listening");
  fflush(stdout);
  for (;;) {
    int peer = accept(fd, 0, 0);
    if (peer >= 0 && pthread_create(&thread, 0, take, (void*)(intptr_t)peer) == 0) pthread_detach(thread);
  }
}

static int stream(char** argv) {
  struct sockaddr_in6 to;
  socklen_t size = address(argv[2], atoi(argv[3]), &to);
  int fd = socket(to.sin6_family, SOCK_STREAM, 0);
  long left = atol(argv[4]), at = 0;
  static unsigned char bytes[65536];
  int64_t began = now_ns(CLOCK_MONOTONIC);
  char end;
  if (connect(fd, (struct sockaddr*)&to, size) != 0) return 3;
  while (left > 0) {
    size_t piece = left < (long)sizeof bytes ? (size_t)left : sizeof bytes;
    for (size_t i = 0; i < piece; i++) bytes[i] = (unsigned char)((at + (long)i) * 7);
    ssize_t sent = send(fd, bytes, piece, MSG_NOSIGNAL);
    if (sent <= 0) return 4;
    at += sent;
    left -= sent;
  }
  shutdown(fd, SHUT_WR);
  if (recv(fd, &end, 1, 0) != 1) return 5;
  printf("took %ld ms\n", (long)((now_ns(CLOCK_MONOTONIC) - began) / 1000000));
  return 0;
}

int main(int argc, char** argv) {
  if (argc >= 7 && strcmp(argv[1], "send") == 0) return send_burst(argv, argc);
  if (argc == 3 && strcmp(argv[1], "serve") == 0) return serve(atoi(argv[2]));
  if (argc == 5 && strcmp(argv[1], "stream") == 0) return stream(argv);
  return 2;
}
