import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Random logs by Kafka's own producers: bootstrap servers, then topic, partitions, seed and how many turns, again and
 * again. A topic whose name begins with "compacted" gets few keys, and none that is null.
 */
public class RandomLogs {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    private static final Long[] TIMES = {null, 0L, 1L, 1_600_000_000_000L, 1_700_000_000_123L, 1_700_000_000_123_456_789L};

    private final String servers;
    private final String topic;
    private final int partitions;
    private final boolean isCompacted;
    private final Random chance;
    private int number = 0;

    RandomLogs(String servers, String topic, int partitions, long seed) {
        this.servers = servers;
        this.topic = topic;
        this.partitions = partitions;
        this.isCompacted = topic.startsWith("compacted");
        this.chance = new Random(seed);
    }

    public static void main(String[] arguments) throws Exception {
        for (int at = 1; at < arguments.length; at += 4) {
            var partitions = Integer.parseInt(arguments[at + 1]);
            var logs = new RandomLogs(arguments[0], arguments[at], partitions, Long.parseLong(arguments[at + 2]));
            for (int turn = 0; turn < Integer.parseInt(arguments[at + 3]); turn++) {
                logs.turn(turn);
            }
        }
    }

    /** One producer of one kind; transactions are interleaved with the records of another one. */
    private void turn(int turn) throws Exception {
        try (var producer = producer(turn, turn % 3 == 1)) {
            if (turn % 3 != 1) {
                write(producer, few());
                return;
            }
            producer.initTransactions();
            try (var plain = producer(turn, false)) {
                for (int count = 1 + chance.nextInt(4); count > 0; count--) {
                    producer.beginTransaction();
                    write(producer, few());
                    if (chance.nextBoolean()) {
                        write(plain, few() / 2);
                        write(producer, few());
                    }
                    if (chance.nextInt(3) == 0) {
                        producer.abortTransaction();
                    } else {
                        producer.commitTransaction();
                    }
                }
            }
        }
    }

    private KafkaProducer<byte[], byte[]> producer(int turn, boolean isTransactional) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", servers);
        settings.put("compression.type", CODECS[(turn + chance.nextInt(2)) % CODECS.length]);
        settings.put("batch.size", new int[] {0, 300, 16_384, 1_000_000, 1_000_000}[chance.nextInt(5)]);
        settings.put("linger.ms", 50);
        settings.put("max.request.size", 5_000_000);
        boolean isIdempotent = isTransactional || chance.nextBoolean();
        settings.put("enable.idempotence", isIdempotent);
        settings.put("acks", isIdempotent || chance.nextBoolean() ? "all" : "1");
        if (isTransactional) {
            settings.put("transactional.id", topic + "-" + turn % 2);
        }
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private int few() {
        return new int[] {1, 5, 60, 500, 900}[chance.nextInt(5)];
    }

    /** All of them are acknowledged: an abort would drop what is still in the queue. */
    private void write(KafkaProducer<byte[], byte[]> producer, int count) throws Exception {
        List<Future<?>> sent = new ArrayList<>();
        int most = chance.nextInt(4) == 0 ? 4000 : 200;
        boolean hasHeaders = chance.nextBoolean();
        int times = isCompacted ? TIMES.length - 1 : TIMES.length; // no segment would be rolled behind one of the future
        Long time = TIMES[chance.nextInt(times)];
        for (int at = 0; at < count; at++) {
            Long own = chance.nextInt(10) == 0 ? TIMES[chance.nextInt(times)] : time;
            sent.add(producer.send(new ProducerRecord<>(
                topic, chance.nextInt(partitions), own, key(), value(most), hasHeaders ? headers() : List.of())));
        }
        producer.flush();
        for (Future<?> one : sent) {
            one.get();
        }
    }

    private byte[] key() {
        if (isCompacted) {
            return ("k" + chance.nextInt(chance.nextBoolean() ? 20 : 5000)).getBytes();
        }
        int kind = chance.nextInt(6);
        return kind == 0 ? null : kind == 1 ? new byte[0] : ("key " + chance.nextInt(100)).getBytes();
    }

    private byte[] value(int most) {
        int kind = chance.nextInt(12);
        if (kind == 0) {
            return null;
        }
        var value = new byte[kind == 1 ? 0 : kind == 2 && chance.nextInt(20) == 0 ? 60_000 : chance.nextInt(most)];
        for (int at = 0; at < value.length; at++) {
            value[at] = (byte) (at % 2 == 0 ? chance.nextInt(256) : 'x');
        }
        byte[] told = ("#" + number++ + " ").getBytes();
        System.arraycopy(told, 0, value, 0, Math.min(told.length, value.length));
        return value;
    }

    private List<Header> headers() {
        List<Header> found = new ArrayList<>();
        for (int count = chance.nextInt(4); count > 0; count--) {
            String name = new String[] {"", "h", "name", "\u00fc\u20ac", "h"}[chance.nextInt(5)];
            int kind = chance.nextInt(3);
            found.add(new RecordHeader(name, kind == 0 ? null : kind == 1 ? new byte[0] : new byte[] {1, (byte) 200, 0}));
        }
        return found;
    }
}
