// An HTTP server with one event loop. Pages:
//   /page    answers at once
//   /upload  stores the body in a file
// Usage: node site.js PORT LOG [verbose] [catalogue=FILE]
// With `verbose`, it prints each request. With a catalogue, it loads that before it listens.
"use strict";
const fs = require("fs");
const http = require("http");
const [port, log, ...options] = process.argv.slice(2);
const verbose = options.includes("verbose");
const catalogue = options.find((option) => option.startsWith("catalogue="));
const items = catalogue ? JSON.parse(fs.readFileSync(catalogue.slice(10))) : [];

http
  .createServer((request, response) => {
    if (verbose) {
      console.log(new Date().toISOString(), request.method, request.url, request.headers);
    }
    if (request.url === "/upload") {
      const file = fs.createWriteStream(log + ".upload");
      file.on("finish", () => response.end("stored"));
      request.pipe(file);
    } else {
      response.end("ok " + items.length);
    }
  })
  .listen(Number(port), "127.0.0.1");
