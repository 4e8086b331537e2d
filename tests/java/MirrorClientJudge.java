import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.connect.mirror.MirrorClient;

/** What Kafka's own client says of a target: bootstrap servers, then aliases to count the hops of. */
public class MirrorClientJudge {
    public static void main(String[] arguments) throws Exception {
        try (var client = new MirrorClient(Map.of("bootstrap.servers", arguments[0]))) {
            System.out.println("upstream " + String.join(",", new TreeSet<>(client.upstreamClusters())));
            for (int i = 1; i < arguments.length; i++) {
                System.out.println("hops " + arguments[i] + " " + client.replicationHops(arguments[i]));
                System.out.println("topics " + arguments[i] + " "
                    + String.join(",", new TreeSet<>(client.remoteTopics(arguments[i]))));
            }
            System.out.println("remote " + String.join(",", new TreeSet<>(client.remoteTopics())));
        }
    }
}
