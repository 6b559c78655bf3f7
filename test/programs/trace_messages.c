/* Sends and receives messages by every call that can do so. Each message is received before the next is sent.
 *   receive         opens a TCP and a UDP socket on loopback, prints "tcp PORT" and "udp PORT", and receives
 *   send TCP UDP    after "go" on stdin, sends to these two ports; prints "done 1"
 *   flood UDP N     after "go": sends N datagrams to the port UDP, receives none; prints "done 1" */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static void need(long ok, const char *what) {
  if (ok > 0) return;
  perror(what);
  exit(90);
}

static struct sockaddr_in at(int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

static int bound(int type) {
  struct sockaddr_in a = at(0);
  socklen_t size = sizeof a;
  int fd = socket(AF_INET, type, 0);
  need(bind(fd, (void *)&a, sizeof a) == 0 && getsockname(fd, (void *)&a, &size) == 0, "bind");
  printf("%s %d\n", type == SOCK_STREAM ? "tcp" : "udp", ntohs(a.sin_port));
  return fd;
}

static void receive_all(void) {
  char text[256], rest[256];
  struct iovec parts[2] = {{text, 3}, {rest, sizeof rest}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  struct mmsghdr several = {.msg_hdr = message};
  int listening = bound(SOCK_STREAM), datagrams = bound(SOCK_DGRAM), fd;
  need(listen(listening, 1) == 0, "listen");
  fflush(stdout);
  need((fd = accept(listening, NULL, NULL)) >= 0, "accept");
  need(read(fd, text, sizeof text), "read");
  need(write(fd, "k1", 2), "answer");
  need(readv(fd, parts, 2), "readv");
  need(write(fd, "k2", 2), "answer");
  need(recv(fd, text, sizeof text, MSG_PEEK), "peek");
  need(recv(fd, text, sizeof text, 0), "recv");
  need(write(fd, "k3", 2), "answer");
  need(recvmsg(fd, &message, 0), "recvmsg");
  need(write(fd, "k4", 2), "answer");
  need(recvmmsg(fd, &several, 1, 0, NULL), "recvmmsg");
  need(write(fd, "k5", 2), "answer");
  need(read(fd, text, sizeof text), "read of a file");
  need(write(fd, "k6", 2), "answer");
  need(recv(datagrams, text, sizeof text, 0), "datagram");
  need(write(fd, "k7", 2), "answer");
  need(recv(datagrams, text, sizeof text, 0), "datagram");
  need(write(fd, "k8", 2), "answer");
  while (read(0, text, 1) > 0) {
  }
}

static void send_all(int tcp, int udp) {
  char answer[8];
  struct sockaddr_in to = at(tcp), datagrams = at(udp);
  struct iovec parts[3] = {{"wri", 3}, {"", 0}, {"tev", 3}}, one = {"sendmsg", 7}, two = {"sendmmsg", 8},
               three = {"datagram-2", 10};
  struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
  struct mmsghdr several[2] = {
      {.msg_hdr = {.msg_iov = &two, .msg_iovlen = 1}},
      {.msg_hdr = {.msg_iov = &three, .msg_iovlen = 1, .msg_name = &datagrams, .msg_namelen = sizeof datagrams}}};
  int fd = socket(AF_INET, SOCK_STREAM, 0), plain = socket(AF_INET, SOCK_DGRAM, 0), yes = 1;
  int file = memfd_create("message", 0);
  need(write(file, "sendfile!", 9), "file");
  lseek(file, 0, SEEK_SET);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  need(connect(fd, (void *)&to, sizeof to) == 0, "connect");
  need(write(fd, "write", 5), "write");
  need(read(fd, answer, 2), "answer");
  need(writev(fd, parts, 3), "writev");
  need(read(fd, answer, 2), "answer");
  need(send(fd, "sendto", 6, 0), "sendto");
  need(read(fd, answer, 2), "answer");
  need(sendmsg(fd, &message, 0), "sendmsg");
  need(read(fd, answer, 2), "answer");
  need(sendmmsg(fd, several, 1, 0), "sendmmsg");
  need(read(fd, answer, 2), "answer");
  need(sendfile(fd, file, NULL, 9), "sendfile");
  need(read(fd, answer, 2), "answer");
  need(sendto(plain, "datagram-1", 10, 0, (void *)&datagrams, sizeof datagrams), "datagram");
  need(read(fd, answer, 2), "answer");
  need(sendmmsg(plain, several + 1, 1, 0), "datagrams");
  need(read(fd, answer, 2), "answer");
}

int main(int argc, char **argv) {
  char go[2];
  if (argc == 2 && strcmp(argv[1], "receive") == 0) return receive_all(), 0;
  if (argc != 4 || read(0, go, 2) != 2) return 98;
  if (strcmp(argv[1], "send") == 0) send_all(atoi(argv[2]), atoi(argv[3]));
  if (strcmp(argv[1], "flood") == 0) {
    struct sockaddr_in to = at(atoi(argv[2]));
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    for (int i = 0; i < atoi(argv[3]); i++) (void)!sendto(fd, "beat", 4, 0, (void *)&to, sizeof to);
  }
  printf("done 1\n");
  fflush(stdout);
  while (read(0, go, 1) > 0) {
  }
  return 0;
}
