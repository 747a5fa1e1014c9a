import java.io.RandomAccessFile;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/**
 * The disk load of a broker: some threads append to a log under a lock and occasionally flush it, one flushes it
 * without the lock, so that appends wait for the journal, some send old segments to consumers, one reads single
 * blocks of them, and others only compute or wait.
 *
 * java Storage FOLDER SECONDS SEED: FOLDER has segments, each of which is sent once.
 */
public final class Storage {
    private static final long LOG_BYTES = 32 << 20;
    private static final AtomicLong written = new AtomicLong();
    private static volatile long sink;

    private Storage() {
    }

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        long end = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        long seed = Long.parseLong(args[2]);
        ServerSocketChannel server = ServerSocketChannel.open().bind(new InetSocketAddress("127.0.0.1", 0));
        List<Path> segments = new ArrayList<>();
        try (Stream<Path> found = Files.list(folder)) {
            found.filter(path -> path.toString().endsWith(".segment")).sorted().forEach(segments::add);
        }
        FileChannel log = FileChannel.open(folder.resolve("log.dat"), StandardOpenOption.CREATE,
                StandardOpenOption.WRITE);
        Object lock = new Object();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            Random random = new Random(seed * 100 + number);
            threads.add(new Thread(() -> append(log, lock, random, end), "request-handler-" + number));
        }
        threads.add(new Thread(() -> flush(log, end), "log-flusher"));
        for (int number = 0; number < 2; number++) {
            int first = number;
            threads.add(new Thread(() -> send(server, segments, first, end), "network-thread-" + number));
        }
        threads.add(new Thread(() -> blocks(segments, new Random(seed), end), "block-reader"));
        for (int number = 0; number < 6; number++) {
            Random random = new Random(seed * 1000 + number);
            threads.add(new Thread(() -> compute(random, end), "worker-" + number));
        }
        Thread consumer = new Thread(() -> drain(server), "consumer");
        consumer.setDaemon(true);
        consumer.start();
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void append(FileChannel log, Object lock, Random random, long end) {
        try {
            ByteBuffer entry = ByteBuffer.allocateDirect(64 << 10);
            while (System.nanoTime() < end) {
                synchronized (lock) {
                    entry.clear();
                    // Overwrite old entries, so that the log does not fill the disk.
                    log.write(entry, written.getAndAdd(entry.capacity()) % LOG_BYTES);
                    if (random.nextInt(64) == 0) {
                        log.force(true);
                    }
                }
                Thread.sleep(5 + random.nextInt(20));
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void flush(FileChannel log, long end) {
        try {
            while (System.nanoTime() < end) {
                log.force(true);
                Thread.sleep(20);
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void send(ServerSocketChannel server, List<Path> segments, int first, long end) {
        try (SocketChannel to = SocketChannel.open(server.getLocalAddress())) {
            for (int at = first; at < segments.size() && System.nanoTime() < end; at += 2) {
                try (FileChannel from = FileChannel.open(segments.get(at), StandardOpenOption.READ)) {
                    long sent = 0;
                    while (sent < from.size()) {
                        sent += from.transferTo(sent, from.size() - sent, to);
                    }
                }
                Thread.sleep(150);
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void blocks(List<Path> segments, Random random, long end) {
        try {
            byte[] block = new byte[4096];
            for (int at = segments.size() - 1; at >= 0 && System.nanoTime() < end; at--) {
                try (RandomAccessFile file = new RandomAccessFile(segments.get(at).toFile(), "r")) {
                    file.seek((long) random.nextInt(64) * block.length);
                    file.readFully(block);
                }
                Thread.sleep(100 + random.nextInt(200));
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void compute(Random random, long end) {
        try {
            while (System.nanoTime() < end) {
                long until = System.nanoTime() + random.nextInt(4) * 1_000_000L;
                while (System.nanoTime() < until) {
                    sink += random.nextLong();
                }
                Thread.sleep(5 + random.nextInt(60));
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static void drain(ServerSocketChannel server) {
        try {
            while (true) {
                SocketChannel from = server.accept();
                Thread reader = new Thread(() -> {
                    try {
                        ByteBuffer buffer = ByteBuffer.allocateDirect(1 << 20);
                        while (from.read(buffer) >= 0) {
                            buffer.clear();
                        }
                    } catch (Exception error) {
                        throw new IllegalStateException(error);
                    }
                }, "consumer-reader");
                reader.setDaemon(true);
                reader.start();
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
