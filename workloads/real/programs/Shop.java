import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.FileWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/**
 * A shop over HTTP: PORT THREADS LOG MODE MS.
 *
 * <p>`/` reads the stock. `/report?ms=N` sleeps as if it waited for another service. After `/on`, until
 * `/off`, a thread does what MODE names: `lock` computes for MS while it holds the monitor of the stock
 * (logged as BEGIN END in ns of CLOCK_MONOTONIC), `garbage` replaces the entries of a large table.
 */
public class Shop {
    static final Object STOCK = new Object();
    static volatile boolean on;
    static long count = 100;

    public static void main(String[] words) throws Exception {
        int threads = Integer.parseInt(words[1]);
        String mode = words[3];
        int ms = Integer.parseInt(words[4]);
        PrintWriter log = new PrintWriter(new FileWriter(words[2]), true);
        if (mode.equals("lock")) {
            start("batch-writer", () -> write(log, ms));
        } else if (mode.equals("garbage")) {
            long[][] table = new long[ms * 1000][];
            for (int n = 0; n < table.length; n++) table[n] = new long[4];
            start("importer", () -> load(table));
        }
        HttpServer server =
                HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(threads));
        server.createContext("/", Shop::serve);
        server.start();
    }

    static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    static void write(PrintWriter log, int ms) {
        while (true) {
            if (on) {
                synchronized (STOCK) {
                    long begin = System.nanoTime();
                    while (System.nanoTime() - begin < ms * 1_000_000L) count = count * 31 + 7;
                    log.println(begin + " " + System.nanoTime());
                }
            }
            pause(80);
        }
    }

    static void load(long[][] table) {
        int place = 0;
        while (true) {
            if (!on) {
                pause(5);
                continue;
            }
            for (int n = 0; n < 2000; n++) {
                place = (place + 7919) % table.length;
                table[place] = new long[4];
            }
            pause(1);
        }
    }

    static void serve(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        if (path.equals("/on") || path.equals("/off")) {
            on = path.equals("/on");
        } else if (path.equals("/report")) {
            pause(Long.parseLong(exchange.getRequestURI().getQuery().substring(3)));
        } else {
            synchronized (STOCK) {
                count++;
            }
        }
        byte[] body = "done\n".getBytes();
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
