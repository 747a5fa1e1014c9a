import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Producers of small records and a lagging consumer: it reads the start of the segment to which they append,
 * again and again.
 *
 * java Clients BROKER SECONDS MIB TRUTH.csv: fills a topic with MIB MiB, prints "filled", waits for a line, and
 * then loads the broker. TRUTH.csv has each producer request of at least 50 ms: start in ns since 1970, duration
 * in ns, number of the producer.
 */
public final class Clients {
    private static final String TOPIC = "orders";
    private static final TopicPartition PARTITION = new TopicPartition(TOPIC, 0);
    private static final long SLOW_NS = 50_000_000;
    private static final int PRODUCERS = 4;

    private Clients() {
    }

    public static void main(String[] args) throws Exception {
        String broker = args[0];
        long length = (long) (Double.parseDouble(args[1]) * 1e9);
        fill(broker, Integer.parseInt(args[2]));
        System.out.println("filled");
        System.in.read();
        long end = System.nanoTime() + length;
        List<String> slow = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < PRODUCERS; number++) {
            int which = number;
            threads.add(new Thread(() -> produce(broker, which, end, slow), "producer-" + number));
        }
        threads.add(new Thread(() -> lag(broker, end), "consumer"));
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(args[3])))) {
            out.println("begin_ns,dur_ns,producer");
            slow.forEach(out::println);
        }
    }

    private static Map<String, Object> about(String broker) {
        Map<String, Object> about = new HashMap<>();
        about.put("bootstrap.servers", broker);
        return about;
    }

    private static KafkaProducer<byte[], byte[]> producer(String broker, int batch) {
        Map<String, Object> about = about(broker);
        about.put("acks", "1");
        about.put("batch.size", batch);
        about.put("max.block.ms", 60_000);
        return new KafkaProducer<>(about, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static void fill(String broker, int mib) throws Exception {
        try (Admin admin = Admin.create(about(broker))) {
            // One segment: its start is old, its end is written.
            Map<String, String> config = Map.of("segment.bytes", String.valueOf(1 << 30));
            NewTopic topic = new NewTopic(TOPIC, 1, (short) 1).configs(config);
            admin.createTopics(List.of(topic)).all().get(60, TimeUnit.SECONDS);
        }
        byte[] record = new byte[32 << 10];
        new Random(1).nextBytes(record);
        try (KafkaProducer<byte[], byte[]> producer = producer(broker, 1 << 19)) {
            for (int number = 0; number < mib * 32; number++) {
                producer.send(new ProducerRecord<>(TOPIC, record));
            }
        }
    }

    private static void produce(String broker, int number, long end, List<String> slow) {
        byte[] record = new byte[600];
        try (KafkaProducer<byte[], byte[]> producer = producer(broker, 0)) {
            while (System.nanoTime() < end) {
                long clock = System.currentTimeMillis() * 1_000_000;
                long begin = System.nanoTime();
                producer.send(new ProducerRecord<>(TOPIC, record)).get();
                long length = System.nanoTime() - begin;
                if (length >= SLOW_NS) {
                    synchronized (slow) {
                        slow.add(clock + "," + length + "," + number);
                    }
                }
                Thread.sleep(5);
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void lag(String broker, long end) {
        Map<String, Object> about = about(broker);
        about.put("max.partition.fetch.bytes", 1 << 20);
        about.put("fetch.max.bytes", 1 << 20);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(about, bytes, bytes)) {
            consumer.assign(List.of(PARTITION));
            consumer.seekToBeginning(List.of(PARTITION));
            long filled = consumer.endOffsets(List.of(PARTITION)).get(PARTITION);
            while (System.nanoTime() < end) {
                consumer.poll(Duration.ofMillis(100));
                if (consumer.position(PARTITION) >= filled) {
                    consumer.seekToBeginning(List.of(PARTITION));
                }
            }
        }
    }
}
