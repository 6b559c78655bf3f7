package sun.misc;

/** There is none, it says: Hazelcast 3.3 and 3.4 would look with it into strings, which are made otherwise since Java 9. */
public class Unsafe {
  public static Unsafe getUnsafe() {
    return null;
  }
}
