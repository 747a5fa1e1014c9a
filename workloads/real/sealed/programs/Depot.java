import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.FileWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** An HTTP server with a lock: `java Depot PORT LOG`. Its log has times of System.nanoTime. */
public class Depot {
    static final ReentrantLock STOCK = new ReentrantLock();
    static FileWriter log;
    static volatile long sink;
    static int stock = 1000;

    static synchronized void stamp(String what, long begin, long end) {
        try {
            log.write(what + " " + begin + " " + end + "\n");
            log.flush();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static void answer(HttpExchange exchange, String text) throws IOException {
        byte[] bytes = text.getBytes();
        exchange.sendResponseHeaders(200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    static long number(HttpExchange exchange) {
        return Long.parseLong(exchange.getRequestURI().getQuery().split("=")[1]);
    }

    /** A counted loop of int, in which the compiler leaves out safepoint polls. */
    static long scan(int rounds) {
        long sum = 0;
        for (int index = 0; index < rounds; index++) {
            sum = sum * 31 + (index ^ (sum >>> 7));
        }
        return sum;
    }

    /** Takes a page's item from the stock under the lock. */
    static void item(HttpExchange exchange) throws IOException {
        STOCK.lock();
        try {
            stock++;
        } finally {
            STOCK.unlock();
        }
        answer(exchange, "ok");
    }

    /** A thread with a name that does one job after another, so that its id can be read in /proc. */
    static class Worker {
        final SynchronousQueue<Runnable> jobs = new SynchronousQueue<>();

        Worker(String name) {
            Thread thread = new Thread(() -> {
                try {
                    while (true) {
                        jobs.take().run();
                    }
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
            }, name);
            thread.setDaemon(true);
            thread.start();
        }

        void run(Runnable job) throws IOException {
            CountDownLatch done = new CountDownLatch(1);
            try {
                jobs.put(() -> {
                    job.run();
                    done.countDown();
                });
                done.await();
            } catch (InterruptedException error) {
                throw new IOException(error);
            }
        }
    }

    static final Worker RECONCILER = new Worker("reconciler");
    static final Worker SCANNER = new Worker("price-scanner");

    /** Reconciles the stock: holds the lock for N milliseconds while it waits for a partner. */
    static void reconcile(HttpExchange exchange) throws IOException {
        long ms = number(exchange);
        RECONCILER.run(() -> {
            STOCK.lock();
            long begin = System.nanoTime();
            try {
                long until = begin + ms * 1_000_000;
                while (System.nanoTime() < until) {
                    LockSupport.parkNanos(until - System.nanoTime());
                }
            } finally {
                STOCK.unlock();
            }
            stamp("reconcile", begin, System.nanoTime());
        });
        answer(exchange, "done");
    }

    static void scan(HttpExchange exchange) throws IOException {
        int rounds = (int) number(exchange);
        SCANNER.run(() -> {
            long begin = System.nanoTime();
            sink += scan(rounds);
            stamp("scan", begin, System.nanoTime());
        });
        answer(exchange, "done");
    }

    static void collect(HttpExchange exchange) throws IOException {
        long begin = System.nanoTime();
        System.gc();
        stamp("collect", begin, System.nanoTime());
        answer(exchange, "done");
    }

    public static void main(String[] words) throws IOException {
        log = new FileWriter(words[1], true);
        for (int round = 0; round < 50; round++) {
            sink += scan(200_000);
        }
        InetSocketAddress place = new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0]));
        HttpServer server = HttpServer.create(place, 64);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/item", Depot::item);
        server.createContext("/reconcile", Depot::reconcile);
        server.createContext("/scan", Depot::scan);
        server.createContext("/collect", Depot::collect);
        server.start();
    }
}
