import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * A server on a TCP port with a pool for jobs: {@code java Dispatch PORT ENTRIES}. A line is the
 * rounds of a job, in thousands; the reply is a line. A table with ENTRIES parcels fills the heap.
 */
public class Dispatch {
    static final ExecutorService POOL = Executors.newFixedThreadPool(6);
    static final Map<Integer, String> PARCELS = new HashMap<>();
    static final ArrayDeque<Long> RECENT = new ArrayDeque<>();

    static long route(int thousands) {
        long sum = thousands;
        for (long index = 0; index < 1000L * thousands; index++) {
            sum = sum * 31 + (index ^ (sum >>> 7));
        }
        return sum;
    }

    static void serve(Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            var lines = new BufferedReader(new InputStreamReader(socket.getInputStream()));
            OutputStream out = socket.getOutputStream();
            String line;
            while ((line = lines.readLine()) != null) {
                int thousands = Integer.parseInt(line.trim());
                long route = POOL.submit(() -> route(thousands)).get();
                synchronized (RECENT) {
                    RECENT.add(System.nanoTime());
                }
                out.write((route + "\n").getBytes());
            }
        } catch (IOException | ExecutionException | InterruptedException error) {
            System.err.println(error);
        }
    }

    /** Forgets jobs that ended more than a second ago. */
    static void tidy() {
        long oldest = System.nanoTime() - TimeUnit.SECONDS.toNanos(1);
        synchronized (RECENT) {
            while (!RECENT.isEmpty() && RECENT.peek() < oldest) {
                RECENT.remove();
            }
        }
    }

    public static void main(String[] words) throws IOException {
        int entries = Integer.parseInt(words[1]);
        for (int id = 0; id < entries; id++) {
            PARCELS.put(id, "parcel " + id);
        }
        for (int round = 0; round < 200; round++) {
            route(100);
        }
        ScheduledExecutorService timers = Executors.newScheduledThreadPool(2);
        timers.scheduleAtFixedRate(Dispatch::tidy, 50, 50, TimeUnit.MILLISECONDS);
        timers.scheduleWithFixedDelay(() -> route(300), 200, 200, TimeUnit.MILLISECONDS);
        int port = Integer.parseInt(words[0]);
        try (var server = new ServerSocket(port, 64, InetAddress.getLoopbackAddress())) {
            while (true) {
                Socket socket = server.accept();
                new Thread(() -> serve(socket), "connection").start();
            }
        }
    }
}
