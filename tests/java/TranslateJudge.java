import java.time.Duration;
import java.util.Map;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** Where Kafka's own client would let a group go on: bootstrap servers of the target, alias of the source, group. */
public class TranslateJudge {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> properties = Map.of("bootstrap.servers", arguments[0]);
        RemoteClusterUtils.translateOffsets(properties, arguments[1], arguments[2], Duration.ofSeconds(30))
            .forEach((partition, offset) -> System.out.println(partition + " " + offset.offset()));
    }
}
