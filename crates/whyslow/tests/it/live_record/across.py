"""A server whose handler sometimes starts a child that sleeps, and its client, on separate hosts."""
import os
import socket
import subprocess
import sys
import time

role, address = sys.argv[1], (sys.argv[2], 8000)
REQUESTS, SLOW = 40, 23

def until(end, sock):
    data = b''
    while not data.endswith(end):
        more = sock.recv(4096)
        if not more:
            return None
        data += more
    return data

def server():
    listener = socket.create_server(address)
    open('ready.txt', 'w').close()
    sock, _ = listener.accept()
    with sock:
        while (query := until(b'\r\n\r\n', sock)) is not None:
            if b'/report' in query:
                child = subprocess.Popen(['sleep', '0.4'])
                child.wait()
                open('child.txt', 'w').write(str(child.pid))
            sock.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')

def client():
    with socket.create_connection(address, source_address=('10.213.7.1', 47000)) as sock:
        for number in range(REQUESTS):
            what = '/report' if number == SLOW else '/' + 'x' * (number % 7)
            sock.sendall(f'GET {what} HTTP/1.1\r\nHost: here\r\n\r\n'.encode())
            assert until(b'ok', sock)
            time.sleep(0.003 + 0.001 * (number % 5))

{'server': server, 'client': client}[role]()
