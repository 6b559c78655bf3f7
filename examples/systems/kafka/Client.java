import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

// The workload and the oracle of this deployment.
//   Client produce BOOTSTRAP SECONDS   writes records for SECONDS; acked.txt lists the acknowledged ones
//   Client check BOOTSTRAP NODES       exit status 0: an acknowledged record is gone, or something never serves
//                                      again; 1: neither; 2: cannot decide
public class Client {
  static final String TOPIC = "orders";
  static final long PATIENCE_S = 40;

  static Properties settings(String servers) {
    Properties p = new Properties();
    p.put("bootstrap.servers", servers);
    p.put("request.timeout.ms", "3000");
    p.put("default.api.timeout.ms", "5000");
    p.put("reconnect.backoff.max.ms", "500");
    return p;
  }

  static void produce(String servers, long seconds) throws Exception {
    try (Admin admin = Admin.create(settings(servers))) {
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
      while (true) {
        try {
          admin.createTopics(List.of(new NewTopic(TOPIC, 3, (short) 3))).all().get();
          break;
        } catch (Exception e) {
          if (e.getCause() instanceof org.apache.kafka.common.errors.TopicExistsException) break;
          if (System.nanoTime() > end) throw e;
          Thread.sleep(200);
        }
      }
    }
    Properties p = settings(servers);
    p.put("acks", "all");
    p.put("delivery.timeout.ms", "10000");
    p.put("linger.ms", "0");
    p.put("max.block.ms", "10000");
    try (PrintWriter acked = new PrintWriter(Files.newBufferedWriter(Path.of("acked.txt")), true);
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
      for (int n = 0; System.nanoTime() < end; n++) {
        String key = "order-" + n;
        producer.send(new ProducerRecord<>(TOPIC, key, "x".repeat(200)), (where, error) -> {
          if (error == null) acked.println(key);
          else System.out.println(key + ": " + error);
        });
        Thread.sleep(20);
      }
    }
  }

  // What is still missing, as text; empty: every replica of every partition is in sync.
  static String incomplete(Admin admin, int nodes) {
    try {
      int there = admin.describeCluster().nodes().get().size();
      if (there < nodes) return there + " of " + nodes + " nodes are in the cluster";
      TopicDescription topic = admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC);
      for (TopicPartitionInfo partition : topic.partitions())
        if (partition.leader() == null || partition.isr().size() < nodes) return partition.toString();
      return "";
    } catch (Exception e) {
      return e.toString();
    }
  }

  static int check(String servers, int nodes) throws Exception {
    Set<String> missing = new TreeSet<>(Files.readAllLines(Path.of("acked.txt")));
    int acked = missing.size();
    if (acked == 0) throw new IllegalStateException("nothing was acknowledged");
    String lacks;
    try (Admin admin = Admin.create(settings(servers))) {
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
      while (!(lacks = incomplete(admin, nodes)).isEmpty() && System.nanoTime() < end) Thread.sleep(300);
    }
    if (!lacks.isEmpty()) {
      System.out.println("STUCK: " + PATIENCE_S + " seconds later " + lacks);
      return 0;
    }
    Properties p = settings(servers);
    p.put("isolation.level", "read_committed");
    try (KafkaConsumer<String, String> consumer =
             new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
      List<TopicPartition> partitions = new ArrayList<>();
      consumer.partitionsFor(TOPIC).forEach(one -> partitions.add(new TopicPartition(TOPIC, one.partition())));
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
      while (partitions.stream().anyMatch(one -> consumer.position(one) < ends.get(one))) {
        if (System.nanoTime() > end) {
          System.out.println("STUCK: the records can't be read to their end");
          return 0;
        }
        consumer.poll(Duration.ofMillis(500)).forEach(record -> missing.remove(record.key()));
      }
    }
    if (!missing.isEmpty())
      System.out.println("LOST: " + missing.size() + " of " + acked + " acknowledged records: " + missing);
    else System.out.println("all " + acked + " acknowledged records are there, on " + nodes + " nodes");
    return missing.isEmpty() ? 1 : 0;
  }

  public static void main(String[] args) {
    int status = 2;  // an error must not exit with 0 or 1, which are verdicts
    try {
      if (args[0].equals("check")) status = check(args[1], Integer.parseInt(args[2]));
      else produce(args[1], Long.parseLong(args[2]));
      if (args[0].equals("produce")) status = 0;
    } catch (Exception e) {
      e.printStackTrace(System.out);
    }
    System.out.flush();
    Runtime.getRuntime().halt(status);
  }
}
