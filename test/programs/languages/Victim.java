// victim.c in Java.
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;

class Victim {
  public static void main(String[] arguments) throws Exception {
    while (!new File(arguments[1]).exists()) Thread.sleep(2);
    FileInputStream file = new FileInputStream(arguments[0]);
    for (int n = 1; n <= 5; n++) {
      try {
        file.read(new byte[1]);
        System.out.println("read " + n + " = ok");
      } catch (IOException e) {
        System.out.println("read " + n + " = " + e.getMessage());
      }
    }
    System.out.println("done");
    Thread.sleep(3600_000);
  }
}
