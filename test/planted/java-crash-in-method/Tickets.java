// A server that issues tickets. A ticket's name is "ROLL-NUMBER" and never repeats: when a roll is used up, a new one
// begins, whose numbers count from 1. Roll and number are stored in a small file that is mapped into memory, so they
// survive the server's end.
// Usage: java Tickets ADDRESS PORT FOLDER
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;

public class Tickets {
  private static final int TICKETS_A_ROLL = 80;
  private static final int SEAL_ROUNDS = 20_000;
  private static final int ROLL = 0;    // the offsets of the values in the file
  private static final int NUMBER = 4;
  private static final int SEAL = 8;

  private final MappedByteBuffer state;
  private final MessageDigest digest;

  Tickets(Path folder) throws Exception {
    Files.createDirectories(folder);
    try (FileChannel file = FileChannel.open(
             folder.resolve("tickets"), StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.CREATE)) {
      state = file.map(FileChannel.MapMode.READ_WRITE, 0, 4096);
    }
    digest = MessageDigest.getInstance("SHA-512");
    System.err.println("roll " + state.getInt(ROLL) + ", number " + state.getInt(NUMBER));
  }

  /** Begins a new roll, with a seal so that clients cannot forge one. */
  private void nextRoll() {
    int roll = state.getInt(ROLL) + 1;
    state.putInt(NUMBER, 0);
    byte[] seal = ("roll " + roll).getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < SEAL_ROUNDS; ++i) {
      seal = digest.digest(seal);
    }
    for (int i = 0; i < seal.length; ++i) {
      state.put(SEAL + i, seal[i]);
    }
    state.putInt(ROLL, roll);
  }

  private String ticket() {
    if (state.getInt(NUMBER) == TICKETS_A_ROLL) {
      nextRoll();
    }
    int number = state.getInt(NUMBER) + 1;
    state.putInt(NUMBER, number);
    return state.getInt(ROLL) + "-" + number;
  }

  private void serve(ServerSocket listener) throws IOException {
    while (true) {
      try (Socket client = listener.accept()) {
        client.setTcpNoDelay(true);
        BufferedReader in = new BufferedReader(new InputStreamReader(client.getInputStream(), StandardCharsets.UTF_8));
        for (String user = in.readLine(); user != null; user = in.readLine()) {
          client.getOutputStream().write((ticket() + "\n").getBytes(StandardCharsets.UTF_8));
        }
      } catch (IOException e) {
        System.err.println("a client is gone: " + e.getMessage());
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    Tickets tickets = new Tickets(Path.of(arguments[2]));
    try (ServerSocket listener =
             new ServerSocket(Integer.parseInt(arguments[1]), 16, InetAddress.getByName(arguments[0]))) {
      tickets.serve(listener);
    }
  }
}
