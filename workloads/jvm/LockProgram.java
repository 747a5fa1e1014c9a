import java.io.IOException;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that wait for each other's locks, and a log of waits and holders, in nanoseconds since 1970.
 *
 * java LockProgram FOLDER SECONDS SEED: writes `truth.csv` and a data file to FOLDER.
 */
public final class LockProgram {
    /** A file that is written under the object's monitor, like the log of a broker. */
    static final class Ledger {
        private final FileChannel file;
        private long entries;

        Ledger(FileChannel file) {
            this.file = file;
        }

        void append(String name, long millis, Truth truth, long requested) throws Exception {
            synchronized (this) {
                truth.enter("ledger", requested);
                try {
                    entries++;
                    hold(millis);
                } finally {
                    truth.leave("ledger");
                }
            }
        }

        void flush(String name, Truth truth, long requested) throws Exception {
            synchronized (this) {
                truth.enter("ledger", requested);
                try {
                    file.write(ByteBuffer.allocate(4 << 20));
                    file.force(true);
                } finally {
                    truth.leave("ledger");
                }
            }
        }

        long size(Truth truth, long requested) {
            synchronized (this) {
                truth.enter("ledger", requested);
                try {
                    return entries;
                } finally {
                    truth.leave("ledger");
                }
            }
        }

        private void hold(long millis) throws InterruptedException {
            long until = System.nanoTime() + millis * 1_000_000;
            if (millis % 2 == 0) {
                Thread.sleep(millis);
            } else {
                while (System.nanoTime() < until) {
                    entries ^= entries << 1;
                }
            }
        }
    }

    /** The same with a lock of java.util.concurrent. */
    static final class Index {
        private final ReentrantLock lock = new ReentrantLock();
        private long entries;

        void rebuild(long millis, Truth truth, long requested) throws InterruptedException {
            lock.lock();
            truth.enter("index", requested);
            try {
                entries++;
                Thread.sleep(millis);
            } finally {
                truth.leave("index");
                lock.unlock();
            }
        }

        long lookup(Truth truth, long requested) {
            lock.lock();
            truth.enter("index", requested);
            try {
                return entries;
            } finally {
                truth.leave("index");
                lock.unlock();
            }
        }
    }

    /** The log of one thread, written at the end. */
    static final class Truth {
        final List<String> lines = new ArrayList<>();
        private long requested;
        private long entered;

        void enter(String lock, long since) {
            entered = now();
            requested = since;
        }

        void leave(String lock) {
            lines.add(lock + "," + Thread.currentThread().getName() + "," + requested + "," + entered + "," + now());
        }
    }

    static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        long end = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        long seed = Long.parseLong(args[2]);
        FileChannel file = FileChannel.open(folder.resolve("ledger.dat"), StandardOpenOption.CREATE,
                StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING);
        Ledger ledger = new Ledger(file);
        Index index = new Index();
        List<Thread> threads = new ArrayList<>();
        List<Truth> truths = new ArrayList<>();
        for (int number = 0; number < 8; number++) {
            Random random = new Random(seed * 100 + number);
            Truth truth = new Truth();
            truths.add(truth);
            Thread thread = new Thread(() -> work(random, ledger, index, truth, end), "request-handler-" + number);
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        file.close();
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(folder.resolve("truth.csv")))) {
            out.println("lock,thread,asked_ns,entered_ns,left_ns");
            for (Truth truth : truths) {
                truth.lines.forEach(out::println);
            }
        }
    }

    private static void work(Random random, Ledger ledger, Index index, Truth truth, long end) {
        try {
            while (System.nanoTime() < end) {
                int dice = random.nextInt(100);
                long requested = now();
                if (dice < 4) {
                    ledger.append(Thread.currentThread().getName(), 60 + random.nextInt(240), truth, requested);
                } else if (dice < 6) {
                    ledger.flush(Thread.currentThread().getName(), truth, requested);
                } else if (dice < 8) {
                    index.rebuild(60 + random.nextInt(240), truth, requested);
                } else if (dice < 40) {
                    ledger.size(truth, requested);
                } else if (dice < 60) {
                    index.lookup(truth, requested);
                } else {
                    Thread.sleep(5 + random.nextInt(40));
                }
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
