# Reads lines from standard input and counts them. While the fault is on, computes for BUSY_MS after each
# batch, and reads nothing meanwhile. Logs these times as `BEGIN END` in ns of CLOCK_MONOTONIC.
#
#     filter.rb PLAN LOG BUSY_MS
require 'json'

plan, log, busy_ms = ARGV
sleep 0.05 until File.exist?(plan)
windows = JSON.parse(File.read(plan))['windows']
now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
out = File.open(log, 'w')
bytes = 0
loop do
  part = $stdin.readpartial(65536)
  bytes += part.bytesize
  start = now.()
  next if windows.none? { |on, off| start >= on && start < off } || bytes < 300_000
  bytes = 0
  stop = start + busy_ms.to_i * 1_000_000
  sum = 0
  1000.times { |n| sum += n * n } while now.() < stop
  out.puts "#{start} #{now.()}"
  out.flush
rescue EOFError
  break
end
