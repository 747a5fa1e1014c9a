"""A server of one of three architectures and its clients, which log the sender, reader and replier of each request."""
import os
import queue
import selectors
import socket
import sys
import threading
import time

shape = sys.argv[1]
CLIENTS, EACH = 6, 20
lines = []

def now():
    return time.clock_gettime_ns(time.CLOCK_REALTIME)

def answer(sock, query, reader):
    text = query.decode().split()
    if len(text[1]) % 3 == 0:
        time.sleep(0.001)
    lines.append(f"{text[1]} {sock.getpeername()[1]} {reader} {threading.get_native_id()}")
    sock.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')

def read(sock):
    data = b''
    while b'\r\n\r\n' not in data:
        more = sock.recv(4096)
        if not more:
            return None
        data += more
    return data

def serve_all(sock):
    with sock:
        while (query := read(sock)) is not None:
            answer(sock, query, threading.get_native_id())

def threads(listener):
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve_all, args=(sock,), daemon=True).start()

def pool(listener):
    jobs = queue.Queue()
    def work():
        while True:
            sock, query, reader = jobs.get()
            answer(sock, query, reader)
    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    loop(listener, lambda sock, query: jobs.put((sock, query, threading.get_native_id())))

def loop(listener, handle):
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                sock, _ = listener.accept()
                selector.register(sock, selectors.EVENT_READ)
                continue
            query = read(key.fileobj)
            if query is None:
                selector.unregister(key.fileobj)
                key.fileobj.close()
            else:
                handle(key.fileobj, query)

def client(number, port):
    with socket.create_connection(('127.0.0.1', port)) as sock:
        for turn in range(EACH):
            name = f"/{number}-{turn}-{'x' * (turn % 7)}"
            sock.sendall(f"GET {name} HTTP/1.1\r\nHost: here\r\nX-Fill: {'y' * 80}\r\n\r\n".encode())
            got = b''
            while not got.endswith(b'ok'):
                got += sock.recv(4096)
            sent.append(f"{name} {sock.getsockname()[1]} {threading.get_native_id()}")

sent = []
listener = socket.create_server(('127.0.0.1', 0), backlog=64)
port = listener.getsockname()[1]
own = lambda sock, query: answer(sock, query, threading.get_native_id())
shapes = {'threads': lambda: threads(listener), 'pool': lambda: pool(listener), 'loop': lambda: loop(listener, own)}
pid = os.fork()
if pid == 0:
    listener.close()
    every = [threading.Thread(target=client, args=(n, port)) for n in range(CLIENTS)]
    for one in every:
        one.start()
    for one in every:
        one.join()
    open('sent.txt', 'w').write('\n'.join(sent) + '\n')
    os._exit(0)
threading.Thread(target=shapes[shape], daemon=True).start()
os.waitpid(pid, 0)
time.sleep(0.2)
open('served.txt', 'w').write('\n'.join(lines) + '\n')
open('port.txt', 'w').write(str(port))
os._exit(0)
