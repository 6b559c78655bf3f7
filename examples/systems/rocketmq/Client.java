import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

// The workload and the oracle of this deployment.
//   Client produce NAMES SECONDS   sends messages for SECONDS; acked.txt lists the acknowledged ones, which both the
//                                  master and the slave have synced
//   Client check NAMES             exit status 0: an acknowledged message is gone, or a server never serves again;
//                                  1: neither; 2: cannot decide
public class Client {
  static final String TOPIC = "orders";
  static final long PATIENCE_S = 40;

  static long in(long seconds) { return System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds); }

  static boolean send(DefaultMQProducer producer, String key) throws InterruptedException {
    try {
      byte[] body = (key + " " + "x".repeat(200)).getBytes(StandardCharsets.UTF_8);
      return producer.send(new Message(TOPIC, body)).getSendStatus() == SendStatus.SEND_OK;
    } catch (InterruptedException e) {
      throw e;
    } catch (Exception e) {
      System.out.println(key + ": " + e);
      return false;
    }
  }

  static DefaultMQProducer producer(String names, String group) throws Exception {
    DefaultMQProducer producer = new DefaultMQProducer(group);
    producer.setNamesrvAddr(names);
    producer.setSendMsgTimeout(2000);
    producer.setRetryTimesWhenSendFailed(0);
    producer.setPollNameServerInterval(1000);
    producer.setHeartbeatBrokerInterval(1000);
    producer.start();
    return producer;
  }

  static void produce(String names, long seconds) throws Exception {
    DefaultMQProducer producer = producer(names, "writer");
    try (PrintWriter acked = new PrintWriter(Files.newBufferedWriter(Path.of("acked.txt")), true)) {
      // The first one creates the topic; the slave may still be starting.
      for (long end = in(PATIENCE_S); !send(producer, "first"); Thread.sleep(200))
        if (System.nanoTime() > end) throw new IllegalStateException("nothing is acknowledged");
      acked.println("first");
      long end = in(seconds);
      for (int n = 0; System.nanoTime() < end; n++) {
        String key = "order-" + n;
        if (send(producer, key)) acked.println(key);
        Thread.sleep(20);
      }
    }
  }

  // Removes the messages that exist from `missing`.
  static void read(DefaultMQPullConsumer consumer, Set<String> missing) throws Exception {
    for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(TOPIC)) {
      long at = consumer.minOffset(queue), end = consumer.maxOffset(queue);
      while (at < end) {
        PullResult pulled = consumer.pull(queue, "*", at, 32);
        if (pulled.getPullStatus() == PullStatus.NO_NEW_MSG) break;
        if (pulled.getMsgFoundList() != null)
          for (MessageExt one : pulled.getMsgFoundList())
            missing.remove(new String(one.getBody(), StandardCharsets.UTF_8).split(" ")[0]);
        at = pulled.getNextBeginOffset();
      }
    }
  }

  static int check(String names) throws Exception {
    Set<String> missing = new TreeSet<>(Files.readAllLines(Path.of("acked.txt")));
    int acked = missing.size();
    if (acked == 0) throw new IllegalStateException("nothing was acknowledged");
    DefaultMQProducer producer = producer(names, "last");
    for (long end = in(PATIENCE_S); !send(producer, "last"); Thread.sleep(300))
      if (System.nanoTime() > end) {
        System.out.println("STUCK: " + PATIENCE_S + " seconds later nothing is acknowledged, by the slave too");
        return 0;
      }
    DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("reader");
    consumer.setNamesrvAddr(names);
    consumer.start();
    String why = "";
    for (long end = in(PATIENCE_S); System.nanoTime() < end; Thread.sleep(300)) {
      try {
        read(consumer, missing);
        if (missing.isEmpty()) {
          System.out.println("all " + acked + " acknowledged messages are there");
          return 1;
        }
        why = "";
      } catch (InterruptedException e) {
        throw e;
      } catch (Exception e) {
        why = e.toString();
      }
    }
    System.out.println(why.isEmpty() ? "LOST: " + missing.size() + " of " + acked + " acknowledged messages: " + missing
                                     : "STUCK: the messages can't be read to their end: " + why);
    return 0;
  }

  public static void main(String[] args) {
    int status = 2;  // an error must not exit with 0 or 1, which are verdicts
    try {
      if (args[0].equals("check")) {
        status = check(args[1]);
      } else {
        produce(args[1], Long.parseLong(args[2]));
        status = 0;
      }
    } catch (Exception e) {
      e.printStackTrace(System.out);
    }
    System.out.flush();
    Runtime.getRuntime().halt(status);
  }
}
