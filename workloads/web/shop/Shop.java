// The shop of app.py, in Java: java Shop PORT DATABASE_PORT WORKERS LOG

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.Executors;

public final class Shop {
    private static final Map<String, String> PAGES = Map.of(
            "/", "SELECT id, title FROM item ORDER BY id DESC LIMIT 20",
            "/items", "SELECT id, title, price FROM item WHERE price < 700",
            "/item", "SELECT id, title, price FROM item WHERE id = 7",
            "/orders", "SELECT item.title, count(*) FROM orders JOIN item ON item.id = orders.item GROUP BY 1",
            "/customers", "SELECT customer, count(*) FROM orders GROUP BY 1 ORDER BY 2 DESC LIMIT 10",
            "/search", "SELECT id, title FROM item WHERE title LIKE '%7%'",
            "/basket", "SELECT sum(item.price) FROM orders JOIN item ON item.id = orders.item");

    private static String database;
    private static Path log;

    public static void main(String[] words) throws IOException {
        database = "jdbc:postgresql://db.internal:" + words[1] + "/postgres?user=shop";
        log = Path.of(words[3]);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 256);
        server.createContext("/", Shop::answer);
        server.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(words[2])));
        server.start();
    }

    private static void answer(HttpExchange exchange) throws IOException {
        long begin = now();
        String page = exchange.getRequestURI().getPath();
        int status = 200;
        String body = "well";
        long[] connected = {-1, -1};
        try {
            if (PAGES.containsKey(page)) {
                body = query(PAGES.get(page), connected);
            } else if (!page.equals("/health")) {
                status = 404;
            }
        } catch (SQLException error) {
            status = 500;
            body = error.toString();
        }
        // Read the addresses now: they are gone if the client closes the connection.
        String sides = String.format("\"local\":\"%s\",\"peer\":\"%s\"",
                address(exchange.getLocalAddress()), address(exchange.getRemoteAddress()));
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
        writeLog(exchange, page, sides, begin, connected);
    }

    private static String query(String sql, long[] connected) throws SQLException {
        long begin = now();
        try (Connection connection = DriverManager.getConnection(database);
                Statement statement = connection.createStatement()) {
            connected[0] = now() - begin;
            StringBuilder found = new StringBuilder();
            try (ResultSet rows = statement.executeQuery(sql)) {
                while (rows.next()) {
                    found.append(rows.getString(1)).append('\n');
                }
            }
            return found.toString();
        }
    }

    /** Writes one line per request; the link /proc/thread-self names the kernel's thread id. */
    private static void writeLog(HttpExchange exchange, String page, String sides, long begin, long[] connected)
            throws IOException {
        String[] parent = exchange.getRequestHeaders().getOrDefault("traceparent", java.util.List.of("")).get(0).split("-");
        String trace = parent.length == 4 ? "\"" + parent[1] + "\"" : "null";
        String tid = Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
        String line = String.format(
                "{\"trace_id\":%s,\"endpoint\":\"%s\",\"pid\":%d,\"tid\":%s,\"begin_ns\":%d,\"end_ns\":%d,"
                        + "%s,\"connect_ns\":%s}%n",
                trace, page, ProcessHandle.current().pid(), tid, begin, now(), sides,
                connected[0] < 0 ? "null" : Long.toString(connected[0]));
        Files.write(log, line.getBytes(StandardCharsets.UTF_8), StandardOpenOption.APPEND);
    }

    private static String address(InetSocketAddress address) {
        return address.getAddress().getHostAddress() + ":" + address.getPort();
    }

    private static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }
}
