# A small HTTP server with a thread per connection. Pages:
#   /page           reads a counter; a fraction of a millisecond
#   /report?ms=N    computes for N milliseconds while it holds the interpreter's lock
#   /news?ms=N      answers after N milliseconds, as a long poll without news does
# Usage: ruby shop.rb tcp:PORT|unix:PATH [backlog=N] [single] [log=FILE]
require "socket"
$stdout.sync = true
kind, _, place = ARGV[0].partition(":")
words = ARGV[1..].to_h { |word| word.partition("=").values_at(0, 2) }
server = kind == "unix" ? UNIXServer.new(place) : TCPServer.new("127.0.0.1", place.to_i)
server.listen(words["backlog"].to_i) if words["backlog"]
LOG = words["log"] ? File.open(words["log"], "a").tap { |file| file.sync = true } : nil

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

def tid = File.readlink("/proc/thread-self").split("/").last.to_i

def page(path)
  case path
  when %r{^/report\?ms=(\d+)}
    Thread.current.name = "report"
    began = now
    until_at = began + $1.to_i * 1_000_000
    count = 0
    count += 1 while now < until_at
    LOG&.puts("report #{Process.pid} #{tid} #{began} #{now}")
    count.to_s
  when %r{^/news\?ms=(\d+)}
    sleep($1.to_i / 1000.0)
    "none"
  else
    "ok"
  end
end

def serve(connection)
  while (line = connection.gets)
    path = line.split[1]
    while (header = connection.gets) && header != "\r\n"
    end
    body = page(path)
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
  end
rescue SystemCallError, IOError
  nil
ensure
  connection.close
end

loop do
  connection = server.accept
  if words.key?("single")
    serve(connection)
  else
    Thread.new { serve(connection) }
  end
end
