// A login server. A session's name is "EPOCH-NUMBER" and never repeats: a new epoch begins with every save of
// the state file and with every start of the server, and the numbers of an epoch count from 1.
// Usage: java Sessions ADDRESS PORT FOLDER
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;

public class Sessions {
  private static final int LOGINS_PER_EPOCH = 80;
  private static final int SIGNATURE_ROUNDS = 150;

  private final Path state;
  private final Path copy;
  private final MessageDigest digest;
  private final Map<String, String> users = new LinkedHashMap<>();  // the key is the session
  private int epoch;
  private int number;

  Sessions(Path folder) throws Exception {
    Files.createDirectories(folder);
    state = folder.resolve("sessions.properties");
    copy = folder.resolve("sessions.copy");
    digest = MessageDigest.getInstance("SHA-512");
  }

  private void load() throws Exception {
    Properties saved = new Properties();
    Path from = state;
    if (Files.exists(state) && Files.size(state) == 0) {
      System.err.println("died before it saved anything, taking the copy");
      from = copy;
    }
    if (Files.exists(from)) {
      try (Reader in = Files.newBufferedReader(from)) {
        saved.load(in);
      }
    }
    epoch = Integer.parseInt(saved.getProperty("epoch", "0"));
    for (String key : saved.stringPropertyNames()) {
      if (key.startsWith("session.")) {
        users.put(key.substring("session.".length()), saved.getProperty(key).split(",")[0]);
      }
    }
    System.err.println("loaded epoch " + epoch + ", " + users.size() + " sessions");
  }

  // A user who can write to the folder must not be able to forge a login.
  private String signature(String session, String user) {
    byte[] value = (session + user).getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < SIGNATURE_ROUNDS; ++i) {
      value = digest.digest(value);
    }
    StringBuilder text = new StringBuilder();
    for (byte b : value) {
      text.append(String.format("%02x", b));
    }
    return text.toString();
  }

  private void save() throws IOException {
    ++epoch;
    number = 0;
    if (Files.exists(state)) {
      Files.copy(state, copy, StandardCopyOption.REPLACE_EXISTING);
    }
    try (BufferedWriter out = Files.newBufferedWriter(state)) {
      for (Map.Entry<String, String> entry : users.entrySet()) {
        String session = entry.getKey();
        String user = entry.getValue();
        out.write("session." + session + "=" + user + "," + signature(session, user) + "\n");
      }
      out.write("epoch=" + epoch + "\n");
    }
    System.err.println("saved epoch " + epoch);
  }

  private void serve(ServerSocket listener) throws IOException {
    while (true) {
      try (Socket client = listener.accept()) {
        client.setTcpNoDelay(true);
        BufferedReader in = new BufferedReader(new InputStreamReader(client.getInputStream(), StandardCharsets.UTF_8));
        for (String user = in.readLine(); user != null; user = in.readLine()) {
          if (number == LOGINS_PER_EPOCH) {
            save();
          }
          String session = epoch + "-" + ++number;
          users.put(session, user);
          client.getOutputStream().write((session + "\n").getBytes(StandardCharsets.UTF_8));
        }
      } catch (IOException e) {
        System.err.println("a client is gone: " + e.getMessage());
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    Sessions sessions = new Sessions(Path.of(arguments[2]));
    sessions.load();
    sessions.save();
    try (ServerSocket listener =
             new ServerSocket(Integer.parseInt(arguments[1]), 16, InetAddress.getByName(arguments[0]))) {
      sessions.serve(listener);
    }
  }
}
