package sun.misc;

/** Reports that it is missing: Hazelcast 3.3 and 3.4 would use it to read the internals of strings, which Java 9
 * changed. */
public class Unsafe {
  public static Unsafe getUnsafe() {
    return null;
  }
}
