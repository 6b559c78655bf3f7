package org.rose.test;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;

/** Stands for another tool in the JVM, which changes the victim's class while it runs. A changed class loses its
 * breakpoints. */
public final class Changer {
  private static Instrumentation tool;
  private static volatile int changes;

  public static void premain(String arguments, Instrumentation given) {
    tool = given;
    tool.addTransformer(new ClassFileTransformer() {
      @Override
      public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] code) {
        if (redefined == null || !"org/rose/test/Victim".equals(name)) return null;
        ++changes;
        return code.clone();
      }
    }, true);
  }

  static int change() throws Exception {
    tool.retransformClasses(Victim.class);
    return changes;
  }
}
