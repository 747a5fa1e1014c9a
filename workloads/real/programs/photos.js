// Stores what is posted to it in memory: photos PORT LOG. Answers when the whole body has arrived.
'use strict';
const http = require('http');

const server = http.createServer((request, response) => {
  let bytes = 0;
  request.on('data', (piece) => (bytes += piece.length));
  request.on('end', () => response.end(`${bytes}\n`));
});
server.keepAliveTimeout = 60000;
server.listen(Number(process.argv[2]), '127.0.0.1');
