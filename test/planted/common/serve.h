// Code that the planted programs share, without their bugs: one thread that serves clients line by line over TCP,
// receives datagrams from its peers, and has a periodic timer. C that also compiles as C++.
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SERVE_CLIENTS 64
#define SERVE_LINE 512

struct server {
  const char *ip;
  int port;
  int udp_port;                             // 0: receives no datagrams
  int tick_ms;                              // 0: has no timer
  void (*request)(int client, char *line);  // must call answer(client, ...), now or later
  void (*datagram)(char *text, const char *from);
  void (*tick)(void);
};

struct serve_client {
  int fd;
  size_t length;
  char buffer[SERVE_LINE];
};

static struct serve_client serve_clients[SERVE_CLIENTS];
static int serve_udp = -1;
static int serve_udp_port;

static inline int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((format(printf, 1, 2))) static inline void note(const char *format, ...) {
  char text[SERVE_LINE];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(text, sizeof text - 1, format, arguments);
  va_end(arguments);
  if (size < 0) return;
  if (size > (int)sizeof text - 2) size = (int)sizeof text - 2;
  text[size++] = '\n';
  if (write(2, text, (size_t)size) < 0) return;
}

static inline void serve_close(int client) {
  close(serve_clients[client].fd);
  serve_clients[client].fd = -1;
  serve_clients[client].length = 0;
}

__attribute__((format(printf, 2, 3))) static inline void answer(int client, const char *format, ...) {
  char text[SERVE_LINE];
  if (client < 0 || serve_clients[client].fd < 0) return;
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(text, sizeof text - 1, format, arguments);
  va_end(arguments);
  if (size < 0 || size > (int)sizeof text - 2) size = (int)sizeof text - 2;
  text[size++] = '\n';
  if (send(serve_clients[client].fd, text, (size_t)size, MSG_NOSIGNAL) != size) serve_close(client);
}

__attribute__((format(printf, 2, 3))) static inline void tell(const char *ip, const char *format, ...) {
  char text[SERVE_LINE];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (size < 0 || size >= (int)sizeof text) return;
  struct sockaddr_in to;
  memset(&to, 0, sizeof to);
  to.sin_family = AF_INET;
  to.sin_port = htons((uint16_t)serve_udp_port);
  inet_pton(AF_INET, ip, &to.sin_addr);
  // Errors are ignored, because datagrams may be lost anyway. A node that needs an answer repeats its request.
  if (sendto(serve_udp, text, (size_t)size, 0, (struct sockaddr *)&to, sizeof to) < 0) return;
}

static inline int serve_socket(const char *ip, int port, int type) {
  int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int one = 1;
  struct sockaddr_in at;
  memset(&at, 0, sizeof at);
  at.sin_family = AF_INET;
  at.sin_port = htons((uint16_t)port);
  inet_pton(AF_INET, ip, &at.sin_addr);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
      bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || (type == SOCK_STREAM && listen(fd, 64) != 0)) {
    perror("cannot listen");
    exit(1);
  }
  return fd;
}

static inline void serve_accept(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  for (int i = 0; i < SERVE_CLIENTS; i++)
    if (serve_clients[i].fd < 0) {
      serve_clients[i].fd = fd;
      serve_clients[i].length = 0;
      return;
    }
  close(fd);
}

static inline void serve_read(const struct server *s, int client) {
  struct serve_client *c = &serve_clients[client];
  ssize_t size = recv(c->fd, c->buffer + c->length, sizeof c->buffer - 1 - c->length, 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    serve_close(client);
    return;
  }
  c->length += (size_t)size;
  char *end;
  while (c->fd >= 0 && (end = (char *)memchr(c->buffer, '\n', c->length)) != NULL) {
    char line[SERVE_LINE];
    size_t length = (size_t)(end - c->buffer);
    memcpy(line, c->buffer, length);
    line[length] = '\0';
    c->length -= length + 1;
    memmove(c->buffer, end + 1, c->length);
    s->request(client, line);
  }
  if (c->length == sizeof c->buffer - 1) serve_close(client);
}

static inline void serve(const struct server *s) {
  signal(SIGPIPE, SIG_IGN);
  for (int i = 0; i < SERVE_CLIENTS; i++) serve_clients[i].fd = -1;
  int listener = serve_socket(s->ip, s->port, SOCK_STREAM);
  if (s->udp_port != 0) {
    serve_udp = serve_socket(s->ip, s->udp_port, SOCK_DGRAM);
    serve_udp_port = s->udp_port;
  }
  note("ready at %s:%d", s->ip, s->port);
  int64_t next_tick = now_ms() + s->tick_ms;
  for (;;) {
    struct pollfd polled[SERVE_CLIENTS + 2];
    int who[SERVE_CLIENTS + 2], n = 0;
    polled[n].fd = listener, polled[n].events = POLLIN, who[n++] = -1;
    if (serve_udp >= 0) polled[n].fd = serve_udp, polled[n].events = POLLIN, who[n++] = -2;
    for (int i = 0; i < SERVE_CLIENTS; i++)
      if (serve_clients[i].fd >= 0) polled[n].fd = serve_clients[i].fd, polled[n].events = POLLIN, who[n++] = i;
    int64_t left = s->tick_ms != 0 ? next_tick - now_ms() : -1;
    if (s->tick_ms != 0 && left < 0) left = 0;
    if (poll(polled, (nfds_t)n, (int)left) < 0) continue;
    for (int i = 0; i < n; i++) {
      if (polled[i].revents == 0) continue;
      if (who[i] == -1) {
        serve_accept(listener);
      } else if (who[i] == -2) {
        char text[SERVE_LINE], from[INET_ADDRSTRLEN];
        struct sockaddr_in address;
        socklen_t length = sizeof address;
        ssize_t size = recvfrom(serve_udp, text, sizeof text - 1, 0, (struct sockaddr *)&address, &length);
        if (size < 0) continue;
        text[size] = '\0';
        s->datagram(text, inet_ntop(AF_INET, &address.sin_addr, from, sizeof from));
      } else if (serve_clients[who[i]].fd == polled[i].fd) {
        serve_read(s, who[i]);
      }
    }
    if (s->tick_ms != 0 && now_ms() >= next_tick) {
      next_tick = now_ms() + s->tick_ms;
      s->tick();
    }
  }
}
