// A shop on one event loop: /report computes for `ms`, and everything else waits meanwhile. /wait is a
// long poll: it answers after `ms` without occupying the loop. Logs each report as `BEGIN END` in ns of
// CLOCK_MONOTONIC.
'use strict';
const fs = require('fs');
const http = require('http');

const [port, log] = process.argv.slice(2);
const out = fs.openSync(log, 'a');

function report(ms) {
  const begin = process.hrtime.bigint();
  const end = begin + BigInt(ms) * 1000000n;
  let sum = 0;
  while (process.hrtime.bigint() < end) for (let n = 0; n < 20000; n++) sum += Math.sqrt(n);
  fs.writeSync(out, `${begin} ${process.hrtime.bigint()}\n`);
  return `${sum}\n`;
}

const server = http.createServer((request, response) => {
  const url = new URL(request.url, 'http://shop');
  const ms = Number(url.searchParams.get('ms') || 0);
  if (url.pathname === '/report') response.end(report(ms));
  else if (url.pathname === '/wait') setTimeout(() => response.end('done\n'), ms);
  else response.end('hello\n');
});
server.keepAliveTimeout = 60000;
server.listen(Number(port), '127.0.0.1');
