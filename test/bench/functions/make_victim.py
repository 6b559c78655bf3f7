#!/usr/bin/env python3
"""Writes a program of thousands of functions with different call rates: make_victim.py FUNCTIONS > victim.cc

Of every hundred functions, one is called from the inner loop of requests, four from requests, fifteen from every
hundredth request, thirty about once per second, twenty only at the start, and thirty never. Functions of the first
three kinds take turns: a request makes 200 calls of the first kind and one of the second. The program serves requests
until its standard input ends. Every byte on standard input ends an interval and begins the next; at the end of each
interval, the program prints how many requests it served per second in it."""
import sys

count = int(sys.argv[1])
kinds = {"inner": [], "request": [], "sometimes": [], "second": [], "start": [], "never": []}
print('''#include <poll.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>
typedef unsigned long (*Function)(unsigned long);
static volatile unsigned long sink;
static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
''')
for i in range(count):
    place = i % 100
    kind = ("inner" if place < 1 else "request" if place < 5 else "sometimes" if place < 20 else
            "second" if place < 50 else "start" if place < 70 else "never")
    kinds[kind].append(i)
    print(f'extern "C" __attribute__((noinline)) unsigned long rose_bench_{kind}_{i}(unsigned long x) {{'
          f' for (int k = 0; k < 12; ++k) x = x * {2 * i + 3}u + (x >> 7); return x; }}')
for kind, members in kinds.items():
    names = ", ".join(f"rose_bench_{kind}_{i}" for i in members)
    print(f"static const Function {kind}[] = {{{names}}};\nconstexpr unsigned {kind}_count = {len(members)};")
print('''
int main() {
  unsigned long x = 1;
  for (const Function f : start) x = f(x);
  sink = reinterpret_cast<unsigned long>(never[sink % never_count]);
  std::puts("ready");
  std::fflush(stdout);
  double begin = now(), second_at = begin;
  unsigned long requests = 0, served = 0;
  for (;;) {
    // A request: work of its own, 200 calls from the inner loop, and one or two calls of other functions.
    for (int round = 0; round < 200; ++round) {
      x = inner[(served + static_cast<unsigned long>(round)) % inner_count](x);
      for (int k = 0; k < 500; ++k) x = x * 6364136223846793005u + 1442695040888963407u;
    }
    x = request[served % request_count](x);
    if (served % 100 == 0) x = sometimes[(served / 100) % sometimes_count](x);
    ++served;
    ++requests;
    const double at = now();
    if (at - second_at > 1) {
      for (const Function f : second) x = f(x);
      second_at = at;
    }
    sink = x;
    if (requests % 16 != 0) continue;
    pollfd wait{0, POLLIN, 0};
    if (::poll(&wait, 1, 0) != 1) continue;
    char byte;
    const bool more = ::read(0, &byte, 1) == 1;
    const double end = now();
    std::printf("%.3f\\n", static_cast<double>(requests) / (end - begin));
    std::fflush(stdout);
    if (!more) return 0;
    requests = 0;
    begin = now();
  }
}''')
