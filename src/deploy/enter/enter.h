/* Shared by rose and the entry point of its containers (enter.c): a page of memory that contains what is to be executed
 * and the progress so far. C that C++ also compiles. */
#ifndef ROSE_DEPLOY_ENTER_H
#define ROSE_DEPLOY_ENTER_H

#include <stdint.h>

/* The folder that rose mounts in the container. It contains the entry point and the socket. */
#define ROSE_ENTER_FOLDER "/.rose"
#define ROSE_ENTER_PROGRAM "enter"
#define ROSE_ENTER_SOCKET "sock"
/* If this is the only argument, the entry point only keeps the container's network namespace alive. */
#define ROSE_ENTER_HOLD "rose:hold"
/* If this is the first argument, the entry point starts the command that follows and acts as its init process. */
#define ROSE_ENTER_INIT "--"

#define ROSE_ENTER_MAGIC 0x6e657372U /* "rsen" */
#define ROSE_ENTER_VERSION 1

enum rose_enter_state {
  ROSE_ENTER_PREPARING = 0,
  ROSE_ENTER_WAITING = 1, /* has its filter; only execve follows (with `may_call`, also futex and recvfrom) */
  ROSE_ENTER_RELEASED = 2,
};

enum rose_enter_stage {
  ROSE_ENTER_STREAMS,
  ROSE_ENTER_FIND,
  ROSE_ENTER_FILTER,
  ROSE_ENTER_EXEC,
};

/* Strings follow the struct in the same page, in blocks of consecutive NUL-terminated strings. Offsets are in bytes
 * from the start of the page. */
struct rose_enter_page {
  uint32_t magic;
  uint32_t version;
  uint32_t state;    /* enum rose_enter_state; a futex */
  int32_t listener;  /* descriptor number of the filter's listener in the container; -1: none */
  int32_t stage;     /* the step that failed */
  int32_t error;     /* errno of that step; 0: no failure */
  uint32_t may_call; /* the filter allows futex and recvfrom, so the entry point may wait in the kernel */
  uint32_t argc;
  uint32_t argv_at;
  uint32_t envc; /* variables to replace or add */
  uint32_t env_at;
  uint32_t filter_at; /* array of struct sock_filter */
  uint32_t filter_count;
  uint32_t pad;
};

/* Number of descriptors sent with the only message: the page, stdout, stderr. */
#define ROSE_ENTER_DESCRIPTORS 3

#endif
