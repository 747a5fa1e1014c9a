# Looks up a name every few milliseconds with the resolver of the C library, and logs each lookup as
# `BEGIN END` in ns of CLOCK_MONOTONIC.
#
#     lookups.rb PLAN LOG HOST
require 'json'
require 'socket'

plan, log, host = ARGV
sleep 0.05 until File.exist?(plan)
stop = JSON.parse(File.read(plan))['until']
now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
out = File.open(log, 'w')
while (start = now.()) < stop
  begin
    Addrinfo.getaddrinfo(host, 5432, :INET, :STREAM)
  rescue SocketError
    # Logged as well: the program waited for it.
  end
  out.puts "#{start} #{now.()}"
  sleep 0.02
end
out.close
