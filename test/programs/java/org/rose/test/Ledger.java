package org.rose.test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;

// Copies blocks into a ledger, four to a page. Usage: Ledger BLOCKS [BAD]. BAD is the number of a block that is damaged
// and must be copied again. The bug: if it is the last block of its page, it is lost, because the page is closed
// nevertheless. No system call fails.
public final class Ledger {
  static final class ChecksumException extends Exception {
    ChecksumException(String message) { super(message); }
  }

  private final List<String> page = new ArrayList<>();
  private final StringBuilder ledger = new StringBuilder();

  static String block(int number) { return "block " + number; }

  static int sum(String text) {
    int sum = 7;
    for (char c : text.toCharArray()) sum = sum * 31 + c;
    return sum;
  }

  private void check(String text, int sum) throws ChecksumException {
    if (sum(text) != sum) throw new ChecksumException("'" + text + "' does not match its sum");
  }

  private void copy(String text, int sum) throws ChecksumException {
    check(text, sum);
    page.add(text);
  }

  private void take(int number, boolean damaged) {
    for (boolean again = false;; again = true) {
      try {
        copy(block(number), sum(block(number)) + (damaged && !again ? 1 : 0));
        return;
      } catch (ChecksumException e) {
        log("WARN", "page " + (number + 3) / 4 + ": a block is damaged, the copy is asked for it", e);
        if (number % 4 == 0) return;  // the bug
      } finally {
        if (number % 4 == 0) close();
      }
    }
  }

  private void close() {
    for (String text : page) ledger.append(text).append('\n');
    page.clear();
  }

  private static long clock = 0;

  static void log(String level, String text, Throwable e) {
    clock += 50;
    System.err.println(String.format("2026-01-02 03:04:%02d,%03d [main] %s Ledger - %s", clock / 1000, clock % 1000, level, text));
    if (e != null) e.printStackTrace();
  }

  public static void main(String[] arguments) throws IOException, InterruptedException {
    final int blocks = Integer.parseInt(arguments[0]);
    final int bad = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 0;
    final Ledger all = new Ledger();
    log("INFO", "the ledger takes " + blocks + " blocks", null);
    for (int number = 1; number <= blocks; ++number) {
      all.take(number, number == bad);
      if (number % 4 == 0) log("INFO", "page " + number / 4 + " is closed", null);
    }
    final Path path = Paths.get("ledger");
    Files.write(path, all.ledger.toString().getBytes("UTF-8"));
    log("INFO", "the ledger is written", null);
  }
}
