package org.rose.test;

/** Compiled without the names of variables. */
final class Bare {
  private Bare() {}

  static int plain(int number, String text) {
    return number + text.length();
  }
}
