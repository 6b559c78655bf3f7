package org.rose.test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.function.IntUnaryOperator;

/** Executes the named part the given number of times. Prints one line for each step, before the next step begins. */
public final class Victim {
  static long sum;

  static void print(String what) {
    System.out.println(what);
    System.out.flush();
  }

  static void step(int i) {
    sum += i;
  }

  static void step(long i) {
    sum -= i;
  }

  static void first(int i) {
    sum ^= i;
  }

  static void second(int i) {
    sum += 2L * i;
  }

  static void twice(int i) {
    first(i);
    print("between " + i);
    second(i);  // the second call
  }

  static int store(int i) throws IOException {
    step(i);
    print("stored " + i); // behind the step
    return i;
  }

  /** Its loop jumps back to the method's first instruction, which must not count as a call. */
  static void loop(int[] left) {
    do {
      --left[0];
    } while (left[0] > 0);
  }

  static native void missing(int i);

  interface Shape {
    default int area(int side) {
      return side * side;
    }
  }

  static final class Inner implements Shape {
    final int side;

    Inner(int side) {
      this.side = side;
    }

    int own() {
      return area(side);
    }
  }

  static void busy(int i) {
    sum += i;
  }

  /** Creates a new file in each call. */
  static void seldom(int i) throws IOException {
    Files.createFile(Paths.get("seldom-" + i));
  }

  static String named(int i) {
    return "seldom-" + i;
  }

  /** Makes 10,000 calls a second of one method, and two a second of others. */
  static void paced(int i) throws IOException {
    for (int n = 0; n < 200; ++n) busy(n);
    if (i % 25 == 0) {
      sum += named(i).length();
      seldom(i);
    }
    try {
      Thread.sleep(20);
    } catch (InterruptedException e) {
      throw new IOException(e);
    }
  }

  static boolean throwing(int i) {
    try {
      store(i);
      return false;
    } catch (IOException e) {
      return true;
    }
  }

  /** Throws before and after the class is changed; then waits until the agent has set its breakpoints again. */
  static void changed() throws IOException {
    print("before " + throwing(1));
    try {
      print("changes " + Changer.change());
      for (int i = 0; i < 2000 && !throwing(2); ++i) Thread.sleep(5);
      print("after " + throwing(3));
    } catch (Exception e) {
      print("died " + e);
    }
  }

  /** Throws an exception in code of the JDK. */
  static void opens(int i) throws IOException {
    if (i % 2 == 0) Files.newInputStream(Paths.get("nowhere", "x" + i)).close();
  }

  static void passes(int i) throws IOException {
    opens(i);
  }

  static void catches(int i) {
    try {
      passes(i);
    } catch (IOException e) {
      sum += i;
    }
  }

  static void itself(int i) {
    try {
      throw new IllegalStateException("" + i);
    } catch (IllegalStateException e) {
      sum -= i;
    }
  }

  // Loads Victim a second time, with another loader. The JVM treats the methods of this copy as different ones.
  static final class Another extends ClassLoader {
    void load() throws IOException {
      try (java.io.InputStream in = Victim.class.getResourceAsStream("Victim.class")) {
        java.io.ByteArrayOutputStream all = new java.io.ByteArrayOutputStream();
        byte[] some = new byte[4096];
        for (int n = in.read(some); n >= 0; n = in.read(some)) all.write(some, 0, n);
        // getDeclaredMethods() links the class
        defineClass("org.rose.test.Victim", all.toByteArray(), 0, all.size()).getDeclaredMethods();
      }
    }
  }

  static void part(String name, int i) throws IOException {
    switch (name) {
      case "step":
        step(i);
        print("step " + i);
        break;
      case "quiet":  // prints only every 1000th step, and makes enough calls to be compiled
        step(i);
        if (i % 1000 == 0) print("step " + i);
        break;
      case "long":
        step((long) i);
        print("long " + i);
        break;
      case "twice":
        twice(i);
        print("twice " + i);
        break;
      case "store":
        try {
          store(i);
        } catch (Exception e) {
          print("caught " + i + " " + e);
        }
        break;
      case "loop":
        loop(new int[] {5});
        print("loop " + i);
        break;
      case "throws":
        catches(i);
        if (i % 10 == 0) itself(i);
        print("threw " + i);
        break;
      case "crowd":
        new Another().load();
        if (i == 200) itself(i);
        break;
      case "storm":
        itself(i);
        break;
      case "changed":
        changed();
        break;
      case "paced":
        paced(i);
        break;
      case "names":
        IntUnaryOperator doubled = x -> x + x;
        print("names " + new Inner(i).own() + " " + doubled.applyAsInt(i));
        break;
      default:
        throw new IllegalArgumentException(name);
    }
  }

  public static void main(String[] arguments) throws Exception {
    int threads = Integer.parseInt(arguments[2]);
    int times = Integer.parseInt(arguments[1]);
    Thread[] all = new Thread[threads];
    for (int t = 0; t < threads; ++t) {
      all[t] = new Thread(() -> {
        try {
          for (int i = 1; i <= times; ++i) part(arguments[0], i);
        } catch (IOException e) {
          print("died " + e);
        }
      });
    }
    for (Thread one : all) one.start();
    for (Thread one : all) one.join();
    print("done");
  }
}
