# The same shop as web.py, in Ruby: web.rb PORT LOG [SECONDS]
#
# With PROFILE=stackprof:FILE or PROFILE=ruby-prof:FOLDER it profiles itself for SECONDS and exits.
require "json"
require "socket"

WORKERS = 4

def now = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)

def connect_database
  Addrinfo.getaddrinfo("db.internal", 5432, Socket::AF_INET, :STREAM).first.ip_address
end

def price(order)
  finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.02
  order += (0..100).sum while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  order
end

def load_order(entry)
  begin_ns = now
  connect_database
  entry[:lookup] = now - begin_ns
  price(7).to_s
end

def handle(connection, log)
  begin_ns = now
  path = connection.readpartial(4096).split(" ")[1]
  entry = { path: path, begin: begin_ns }
  body = path == "/health" ? "well" : load_order(entry)
  connection.write("HTTP/1.0 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
  connection.close
  entry[:end] = now
  log.puts(JSON.generate(entry))
end

def work(waiting, log)
  loop { handle(waiting.pop, log) }
end

def serve(port, log)
  waiting = Queue.new
  server = TCPServer.new("127.0.0.1", port)
  # stackprof's signals reach only the main thread.
  return loop { handle(server.accept, log) } if ENV.fetch("PROFILE", "").start_with?("stackprof")

  WORKERS.times { Thread.new { work(waiting, log) } }
  loop { waiting << server.accept }
end

def profiled(seconds)
  kind, place = ENV.fetch("PROFILE", "").split(":", 2)
  case kind
  when "stackprof"
    require "stackprof"
    Thread.new do
      sleep(seconds)
      StackProf.stop
      File.binwrite(place, Marshal.dump(StackProf.results))
      exit!(true)
    end
    StackProf.start(mode: :wall, raw: true, interval: 20_000)
    yield
  when "ruby-prof"
    require "ruby-prof"
    RubyProf.start
    Thread.new { yield }
    sleep(seconds)
    result = RubyProf.stop
    { "flat" => RubyProf::FlatPrinter, "graph" => RubyProf::GraphPrinter }.each do |name, printer|
      File.open("#{place}/#{name}.txt", "w") { |file| printer.new(result).print(file) }
    end
    RubyProf::CallTreePrinter.new(result).print(path: place, profile: "calltree")
  else
    yield
  end
end

log = File.open(ARGV[1], "w")
log.sync = true
profiled(ARGV.fetch(2, "0").to_f) { serve(Integer(ARGV[0]), log) }
