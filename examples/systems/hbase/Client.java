import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

// The workload and the oracle of this deployment.
//   Client write ZOOKEEPER SECONDS   puts rows for SECONDS; acked.txt lists the acknowledged ones
//   Client check ZOOKEEPER           exit status 0: an acknowledged row is gone, or a server never serves again;
//                                    1: neither; 2: cannot decide
public class Client {
  static final TableName TABLE = TableName.valueOf("orders");
  static final byte[] FAMILY = Bytes.toBytes("f"), COLUMN = Bytes.toBytes("v");
  static final int REGIONS = 4, SERVERS = 2;
  static final long PATIENCE_S = 60, GIVE_UP = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);

  interface Step { String state() throws Exception; }

  // Returns "" when nothing is missing any more, otherwise the last problem.
  static String until(Step step) throws InterruptedException {
    String state;
    do {
      try {
        if ((state = step.state()).isEmpty()) return state;
      } catch (InterruptedException e) {
        throw e;
      } catch (Exception e) {
        state = e.toString().split("\n")[0];
      }
      Thread.sleep(300);
    } while (System.nanoTime() < GIVE_UP);
    return state;
  }

  static Connection connect(String zookeeper) throws Exception {
    Configuration c = HBaseConfiguration.create();
    c.set("hbase.zookeeper.quorum", zookeeper);
    c.set("hbase.rpc.timeout", "2000");
    c.set("hbase.client.operation.timeout", "3000");
    c.set("hbase.client.meta.operation.timeout", "3000");
    c.set("hbase.client.scanner.timeout.period", "5000");
    c.set("hbase.ipc.client.socket.timeout.connect", "1000");
    c.set("hbase.ipc.client.failed.servers.expiry", "200");
    return ConnectionFactory.createConnection(c);
  }

  static String servers(Admin admin) throws Exception {
    ClusterMetrics cluster = admin.getClusterMetrics();
    int live = cluster.getLiveServerMetrics().size();
    return live == SERVERS ? "" : live + " of " + SERVERS + " region servers are live";
  }

  // The first digit of a key is its region.
  static String key(int n) { return n % REGIONS + "-order-" + n; }

  static String value(String key) { return (key + " ").repeat(20); }

  static void put(Table table, String key) throws Exception {
    table.put(new Put(Bytes.toBytes(key)).addColumn(FAMILY, COLUMN, Bytes.toBytes(value(key))));
  }

  static void write(String zookeeper, long seconds) throws Exception {
    try (Connection connection = connect(zookeeper); Admin admin = connection.getAdmin();
        Table table = connection.getTable(TABLE);
        PrintWriter acked = new PrintWriter(Files.newBufferedWriter(Path.of("acked.txt")), true)) {
      String state = until(() -> servers(admin));
      if (state.isEmpty()) state = until(() -> {
        byte[][] splits = new byte[REGIONS - 1][];
        for (int i = 1; i < REGIONS; i++) splits[i - 1] = Bytes.toBytes(String.valueOf(i));
        if (!admin.tableExists(TABLE))
          admin.createTable(TableDescriptorBuilder.newBuilder(TABLE)
                                .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY))
                                .build(),
              splits);
        return admin.isTableAvailable(TABLE) ? "" : "the table is not available";
      });
      if (!state.isEmpty()) throw new IllegalStateException(state);
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
      for (int n = 0; System.nanoTime() < end; n++) {
        String key = key(n);
        try {
          put(table, key);
          acked.println(key);
        } catch (java.io.IOException e) {
          System.out.println(key + ": " + e.toString().split("\n")[0]);
        }
        Thread.sleep(20);
      }
    }
  }

  static int check(String zookeeper) throws Exception {
    Set<String> missing = new TreeSet<>(Files.readAllLines(Path.of("acked.txt")));
    int acked = missing.size();
    if (acked == 0) throw new IllegalStateException("nothing was acknowledged");
    try (Connection connection = connect(zookeeper); Admin admin = connection.getAdmin();
        Table table = connection.getTable(TABLE)) {
      String state = until(() -> servers(admin));
      for (int region = 0; region < REGIONS && state.isEmpty(); region++) {
        String last = region + "-last";
        state = until(() -> {
          put(table, last);
          return "";
        });
      }
      if (state.isEmpty()) state = until(() -> {
        try (ResultScanner scanner = table.getScanner(new Scan().addColumn(FAMILY, COLUMN))) {
          for (Result row : scanner) {
            String key = Bytes.toString(row.getRow());
            if (value(key).equals(Bytes.toString(row.getValue(FAMILY, COLUMN)))) missing.remove(key);
          }
        }
        return "";
      });
      if (!state.isEmpty()) {
        System.out.println("STUCK: " + PATIENCE_S + " seconds later " + state);
        return 0;
      }
    }
    if (!missing.isEmpty())
      System.out.println("LOST: " + missing.size() + " of " + acked + " acknowledged rows: " + missing);
    else System.out.println("all " + acked + " acknowledged rows are there");
    return missing.isEmpty() ? 1 : 0;
  }

  public static void main(String[] args) {
    int status = 2;  // an error must not exit with 0 or 1, which are verdicts
    try {
      if (args[0].equals("check")) {
        status = check(args[1]);
      } else {
        write(args[1], Long.parseLong(args[2]));
        status = 0;
      }
    } catch (Exception e) {
      e.printStackTrace(System.out);
    }
    System.out.flush();
    Runtime.getRuntime().halt(status);
  }
}
