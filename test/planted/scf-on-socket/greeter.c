// A server that answers each line with its length. When descriptors run out, it stops accepting connections, and
// resumes when the next connection is closed.
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int poller, listener;
static int connections;
static int accepting = 1;

static void watch(int fd, int operation, unsigned events) {
  struct epoll_event event = {.events = events, .data.fd = fd};
  if (epoll_ctl(poller, operation, fd, &event) != 0) perror("epoll_ctl");
}

static void accept_all(void) {
  for (;;) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      connections++;
      watch(fd, EPOLL_CTL_ADD, EPOLLIN);
      continue;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    // The bug: if no connection is open, none will be closed, so nothing resumes accepting.
    fprintf(stderr, "cannot accept (%s), not accepting with %d connections open\n", strerror(errno), connections);
    watch(listener, EPOLL_CTL_MOD, 0);
    accepting = 0;
    return;
  }
}

static void closed(int fd) {
  close(fd);
  connections--;
  if (!accepting) {
    fprintf(stderr, "accepting again\n");
    accepting = 1;
    watch(listener, EPOLL_CTL_MOD, EPOLLIN);
  }
}

static void serve(int fd) {
  char line[256], reply[32];
  ssize_t size = recv(fd, line, sizeof line, 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    closed(fd);
    return;
  }
  int length = snprintf(reply, sizeof reply, "%zd\n", size - 1);
  if (send(fd, reply, (size_t)length, MSG_NOSIGNAL) != length) closed(fd);
}

int main(int argc, char **argv) {
  int one = 1;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7000)};
  if (argc != 2 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1) {
    fprintf(stderr, "usage: greeter IP\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  poller = epoll_create1(EPOLL_CLOEXEC);
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (poller < 0 || listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
      bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 64) != 0) {
    perror("greeter");
    return 1;
  }
  watch(listener, EPOLL_CTL_ADD, EPOLLIN);
  for (;;) {
    struct epoll_event events[16];
    int count = epoll_wait(poller, events, 16, -1);
    for (int i = 0; i < count; i++) {
      if (events[i].data.fd == listener) accept_all();
      else serve(events[i].data.fd);
    }
  }
}
