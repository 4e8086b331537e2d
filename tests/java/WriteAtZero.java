import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes records with CreateTime 0, which librdkafka cannot: bootstrap servers, topic, count. */
public class WriteAtZero {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0]);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
                producer.send(new ProducerRecord<>(arguments[1], 0, 0L, "k", String.valueOf(i))).get();
            }
        }
    }
}
