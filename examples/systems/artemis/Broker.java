import java.nio.file.Path;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.spi.core.security.ActiveMQJAASSecurityManager;

// Runs the broker that broker.xml describes. Usage: Broker BROKER.XML
public class Broker {
  public static void main(String[] args) throws Exception {
    EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
    broker.setConfigResourcePath(Path.of(args[0]).toUri().toString());
    broker.setSecurityManager(new ActiveMQJAASSecurityManager());  // security is off in broker.xml
    broker.start();
    System.out.println("broker started");
    Thread.currentThread().join();
  }
}
