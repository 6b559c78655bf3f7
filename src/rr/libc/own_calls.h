// The compiler includes this file before each source of librose-rr-libc.so. The calls that librose-rr itself makes to
// the C library must be neither recorded nor replayed, so the macros below make them bypass interpose.cc.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

extern "C" {
int rose_own_clock_gettime(clockid_t clock, struct timespec* now);
int rose_own_gethostname(char* name, size_t room);
int rose_own_pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*), void* argument);
pid_t rose_own_getpid(void);
ssize_t rose_own_getrandom(void* to, size_t bytes, unsigned flags);
}
#ifndef ROSE_RR_INTERPOSES
#define clock_gettime rose_own_clock_gettime
#define gethostname rose_own_gethostname
#define pthread_create rose_own_pthread_create
#define getpid rose_own_getpid
#define getrandom rose_own_getrandom
#endif
