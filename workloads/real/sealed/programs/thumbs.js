// An HTTP server with one event loop. Pages:
//   /page      answers at once
//   /file      reads a small file, through the thread pool of libuv
//   /convert   runs a shell command and waits for it without the event loop (execFileSync)
//   /hash?n=N  derives N keys in the thread pool of libuv
// Usage: node thumbs.js PORT FILE LOG
"use strict";
const { execFileSync } = require("child_process");
const crypto = require("crypto");
const fs = require("fs");
const http = require("http");
const [port, file, log] = process.argv.slice(2);
const out = fs.openSync(log, "a");
const stamp = (...words) => fs.writeSync(out, words.join(" ") + "\n");
const now = () => process.hrtime.bigint();

http
  .createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    if (url.pathname === "/file") {
      fs.readFile(file, (error, data) => response.end(error ? "missing" : data));
    } else if (url.pathname === "/convert") {
      const begin = now();
      const pid = execFileSync("/bin/sh", [url.searchParams.get("script")]).toString().trim();
      stamp("convert", pid, begin, now());
      response.end(pid);
    } else if (url.pathname === "/hash") {
      const begin = now();
      let left = Number(url.searchParams.get("n"));
      const rounds = Number(url.searchParams.get("rounds"));
      for (let index = left; index > 0; index--) {
        crypto.pbkdf2("password", "salt" + index, rounds, 64, "sha512", () => {
          if (--left === 0) {
            stamp("hash", process.pid, begin, now());
            response.end("done");
          }
        });
      }
    } else {
      response.end("ok");
    }
  })
  .listen(Number(port), "127.0.0.1");
