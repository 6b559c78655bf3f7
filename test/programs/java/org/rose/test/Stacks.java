package org.rose.test;

import java.io.FileOutputStream;
import java.io.IOException;

/** Threads that execute known lines, which a stack must contain when a fault is injected ("stack: NAME" marks them).
 * Usage: Stacks PART TIMES THREADS. */
public final class Stacks {
  static volatile long sum;

  static synchronized void print(String what) {
    System.out.println(what);
    System.out.flush();
  }

  static void put(FileOutputStream file, int i) throws IOException {
    file.write(("line " + i + "\n").getBytes());  // stack: put
  }

  static void append(FileOutputStream file, int i) throws IOException {
    put(file, i);  // stack: append
  }

  static void write(int id, int times) throws IOException {
    try (FileOutputStream file = new FileOutputStream("lines." + id)) {
      for (int i = 0; i < times; ++i) {
        try {
          append(file, i);  // stack: write
        } catch (IOException e) {
          print(id + " fails: " + e.getMessage());
        }
      }
    }
  }

  static void step(int i) {
    sum += i;
  }

  static void outer(int i) {
    step(i);  // stack: outer
  }

  static void steps(int times) {
    for (int i = 0; i < times; ++i) {
      try {
        outer(i);  // stack: steps
      } catch (IllegalStateException e) {
        print("caught " + e.getMessage());
      }
    }
  }

  static void deep(int left, int times) {
    if (left > 0)
      deep(left - 1, times);
    else
      steps(times);
  }

  /** Loaded when it is used first. */
  static final class Late {
    static int value() { return 7; }
  }

  static void part(String name, int id, int times) {
    try {
      if (name.equals("write")) write(id, times);  // stack: part
      if (name.equals("steps")) steps(times);
      if (name.equals("deep")) deep(300, times);
      if (name.equals("late")) print("late " + Late.value());
    } catch (IOException e) {
      print("died " + e);
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    final int threads = Integer.parseInt(arguments[2]);
    final int times = Integer.parseInt(arguments[1]);
    if (threads == 0) {
      part(arguments[0], 0, times);
      print("done");
      return;
    }
    final Thread[] all = new Thread[threads];
    for (int t = 0; t < threads; ++t) {
      final int id = t;
      all[t] = new Thread(() -> part(arguments[0], id, times), "worker-" + id);
      all[t].start();
    }
    for (Thread one : all) one.join();
    print("done");
  }
}
