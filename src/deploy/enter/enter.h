/* What rose and the entry point of its containers (enter.c) share: a page of memory, which holds what is to be executed
 * and tells how far that has come. C that C++ also compiles. */
#ifndef ROSE_DEPLOY_ENTER_H
#define ROSE_DEPLOY_ENTER_H

#include <stdint.h>

/* In the container: the folder that rose mounts, the entry point and the socket in it. */
#define ROSE_ENTER_FOLDER "/.rose"
#define ROSE_ENTER_PROGRAM "enter"
#define ROSE_ENTER_SOCKET "sock"
/* As its only argument: it keeps the container's network namespace, and does nothing else. */
#define ROSE_ENTER_HOLD "rose:hold"

#define ROSE_ENTER_MAGIC 0x6e657372U /* "rsen" */
#define ROSE_ENTER_VERSION 1

enum rose_enter_state {
  ROSE_ENTER_PREPARING = 0,
  ROSE_ENTER_WAITING = 1, /* has its filter, and makes no more call than its execve */
  ROSE_ENTER_RELEASED = 2,
};

enum rose_enter_stage {
  ROSE_ENTER_STREAMS,
  ROSE_ENTER_FIND,
  ROSE_ENTER_FILTER,
  ROSE_ENTER_EXEC,
};

/* Blocks follow it in the same page: strings, each with its NUL, one behind the other; offsets are from the page's
 * begin, in bytes. */
struct rose_enter_page {
  uint32_t magic;
  uint32_t version;
  uint32_t state;    /* enum rose_enter_state; a futex */
  int32_t listener;  /* of the filter: the descriptor's number in the container; -1: none */
  int32_t stage;     /* where it failed */
  int32_t error;     /* and its errno; 0: it did not */
  uint32_t may_call; /* futex and recvfrom are not notified: wait in the kernel */
  uint32_t argc;
  uint32_t argv_at;
  uint32_t envc; /* variables that replace those of the container, or are added */
  uint32_t env_at;
  uint32_t filter_at; /* struct sock_filter */
  uint32_t filter_count;
  uint32_t pad;
};

/* The descriptors that come with the only message: the page, stdout, stderr. */
#define ROSE_ENTER_DESCRIPTORS 3

#endif
