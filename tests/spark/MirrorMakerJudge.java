import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.mirror.MirrorCheckpointConnector;
import org.apache.kafka.connect.mirror.MirrorHeartbeatConnector;
import org.apache.kafka.connect.mirror.MirrorMakerConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;
import org.apache.kafka.connect.mirror.SourceAndTarget;

/** Prints, for each properties file listed in the file named on the command line, how MirrorMaker 2 resolves it (JSON). */
public class MirrorMakerJudge {
    private static Method method(Class<?> type, String name, Class<?>... parameters) throws Exception {
        Method found = type.getDeclaredMethod(name, parameters);
        found.setAccessible(true);
        return found;
    }

    private static Map<String, Object> texts(Map<?, ?> map) {
        Map<String, Object> found = new TreeMap<>();
        map.forEach((key, value) -> found.put(key.toString(), value == null ? null : value.toString()));
        return found;
    }

    private static Map<String, Object> flow(MirrorMakerConfig config, SourceAndTarget pair) throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        Map<String, String> connector = new HashMap<>(config.connectorBaseConfig(pair, MirrorSourceConnector.class));
        found.put("connector", new TreeMap<>(connector));
        found.put("worker", new TreeMap<>(config.workerConfig(pair)));
        Class<?> type = Class.forName("org.apache.kafka.connect.mirror.MirrorSourceConfig");
        Constructor<?> make = type.getDeclaredConstructor(Map.class);
        make.setAccessible(true);
        Object source = make.newInstance(connector);
        for (String name : new String[] {"sourceConsumerConfig", "sourceAdminConfig", "targetAdminConfig", "sourceProducerConfig"}) {
            Map<?, ?> client = (Map<?, ?>) method(type.getSuperclass(), name, String.class).invoke(source, "role");
            found.put(name, texts(client));
        }
        return found;
    }

    private static String text(Object value) {
        if (value instanceof Collection) {
            return String.join(",", ((Collection<?>) value).stream().map(Object::toString).toList());
        }
        return value instanceof Class ? ((Class<?>) value).getName() : String.valueOf(value);
    }

    /** Every key of the three connectors, with its default. */
    private static Map<String, String> known() {
        Map<String, String> found = new TreeMap<>();
        for (Connector connector :
                List.of(new MirrorSourceConnector(), new MirrorCheckpointConnector(), new MirrorHeartbeatConnector())) {
            for (ConfigDef.ConfigKey key : connector.config().configKeys().values()) {
                found.put(key.name, key.hasDefault() && key.defaultValue != null ? text(key.defaultValue) : null);
            }
        }
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        System.out.println("KNOWN " + json.writeValueAsString(known()));
        for (Set<String> names :
                List.of(ConsumerConfig.configNames(), ProducerConfig.configNames(), AdminClientConfig.configNames())) {
            System.out.println("CLIENT " + json.writeValueAsString(new TreeSet<>(names)));
        }
        for (String file : Files.readAllLines(Path.of(arguments[0]))) {
            Properties properties = new Properties();
            try (FileReader reader = new FileReader(file)) {
                properties.load(reader);
            }
            Map<String, String> texts = new HashMap<>();
            properties.forEach((key, value) -> texts.put((String) key, (String) value));
            // Else every worker config scans all jars for plug-ins, two seconds each.
            texts.put("plugin.discovery", "service_load");
            Map<String, Object> answer = new LinkedHashMap<>();
            try {
                MirrorMakerConfig config = new MirrorMakerConfig(texts);
                for (SourceAndTarget pair : config.clusterPairs()) {
                    answer.put(pair.toString(), flow(config, pair));
                }
            } catch (Exception error) {
                answer.clear();
                answer.put("error", String.valueOf(error.getCause() == null ? error : error.getCause()));
            }
            System.out.println("JUDGE " + json.writeValueAsString(answer));
        }
    }
}
