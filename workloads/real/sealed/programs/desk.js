// An HTTP server with three worker processes. Pages:
//   /page          answers at once
//   /archive?n=N   compresses N KiB of text
//   /events        a stream of server-sent events that come now and then
// Usage: node desk.js PORT
"use strict";
const cluster = require("cluster");
const http = require("http");
const zlib = require("zlib");
const text = Array.from({ length: 16384 }, (_, line) => `entry ${(line * 7919) % 10007} open\n`);
const archive = Buffer.from(text.join(""));

function serve(request, response) {
  const url = new URL(request.url, "http://desk");
  if (url.pathname === "/archive") {
    response.end(zlib.gzipSync(archive.subarray(0, 1024 * Number(url.searchParams.get("n")))));
  } else if (url.pathname === "/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    let number = 0;
    const timer = setInterval(() => response.write(`data: ${number++}\n\n`), 170);
    request.on("close", () => clearInterval(timer));
  } else {
    response.end("ok");
  }
}

if (cluster.isPrimary) {
  for (let worker = 0; worker < 3; worker++) {
    cluster.fork();
  }
} else {
  http.createServer(serve).listen(Number(process.argv[2]), "127.0.0.1");
}
