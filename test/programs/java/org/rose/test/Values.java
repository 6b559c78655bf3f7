package org.rose.test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** Calls with known arguments, results, variables and fields. The ith call of a method uses i. Usage: Values TIMES
 * THREADS. */
public class Values {
  enum Shade {
    LIGHT,
    DEEP {
      @Override
      boolean dark() {
        return true;
      }
    };

    boolean dark() {
      return false;
    }
  }

  static class Base {
    protected long epoch;
    static int made = 7;
  }

  static final class Box extends Base {
    final String label;
    final Integer boxed;
    final AtomicLong counter = new AtomicLong();
    Box next;
    int[] parts = new int[3];

    Box(int i) {
      label = "box-" + i;
      boxed = 2 * i;
      epoch = 1000L + i;
      counter.set(-i);
    }

    int weigh(int by) {
      return by + parts.length;
    }
  }

  static int plain(int number, long large, String text, double share, boolean flag, Shade shade, char letter, byte small, Object none) {
    int twice = 2 * number;
    return twice + 1;  // behind `twice`
  }

  static long longs(int i) {
    if (i % 2 == 0) return -1L * i;
    return 1_000_000_000_000L + i;
  }

  static String texts(int i) {
    return i % 3 == 0 ? null : "text-" + i;
  }

  static double shares(int i) {
    return i / 4.0;
  }

  static boolean odd(int i) {
    return i % 2 == 1;
  }

  static Shade shades(int i) {
    return i % 2 == 1 ? Shade.DEEP : Shade.LIGHT;
  }

  static List<String> lists(int i) {
    return new ArrayList<>();
  }

  /** Throws an exception in every other call. */
  static int failing(int i) {
    if (i % 2 == 1) throw new IllegalStateException("odd");
    return inner(i);
  }

  static int inner(int i) {
    return i + 5;
  }

  static synchronized short narrow(int i) {
    return (short) (-i);
  }

  /** Its loop jumps back to the method's first instruction, which must not count as a call. */
  static void loop(int[] left) {
    do {
      --left[0];
    } while (left[0] > 0);
  }

  static int busy(int i) {
    return i;
  }

  static void once(int i) {
    Box box = new Box(i);
    box.next = new Box(i + 1);
    plain(i, 3_000_000_000L * i, "text-" + i, i / 2.0, i % 2 == 0, shades(i), (char) ('a' + i % 26), (byte) -i, null);
    box.weigh(i);
    longs(i);
    texts(i);
    shares(i);
    odd(i);
    shades(i);
    lists(i);
    try {
      failing(i);
    } catch (IllegalStateException e) {
      narrow(-1);
    }
    narrow(i);
    loop(new int[] {3});
    Bare.plain(i, "bare-" + i);
  }

  public static void main(String[] args) throws Exception {
    int times = Integer.parseInt(args[0]), threads = Integer.parseInt(args[1]);
    Thread[] all = new Thread[threads];
    for (int t = 0; t < threads; ++t) {
      final int from = t * times;
      all[t] = new Thread(() -> {
        for (int i = from; i < from + times; ++i) once(i);
      });
      all[t].start();
    }
    for (Thread one : all) one.join();
    if (args.length > 2) for (int i = 0; i < 100_000; ++i) busy(i);
    System.out.println("done");
    System.out.flush();
  }
}
