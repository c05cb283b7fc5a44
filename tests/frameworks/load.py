#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""load.py SERVER PORT - a load on SERVER whose requests are counted here, where they are
sent: concurrent connections, errors, aborted requests, clients that vanish. Prints
"NAME<tab>COUNT" for each kind of request. Names have no digits or literals, so that they
are the same before and after they are made fit to be stored."""
import collections
import os
import socket
import struct
import sys
import threading
import time

counts = collections.Counter()
guard = threading.Lock()
failures = []


def count(name, number=1):
    with guard:
        counts[name] += number


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def reset(connection):
    """Close it with RST, as when a client dies."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def together(threads, work, *args):
    def guarded(number):
        try:
            work(number, *args)
        except Exception as error:  # tell it at the end
            failures.append(repr(error))

    running = [threading.Thread(target=guarded, args=(i,)) for i in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def answer(stream):
    """The status of one HTTP answer, its body read and dropped."""
    status, length = int(stream.readline().split()[1]), 0
    while (line := stream.readline().strip()):
        name, value = line.split(b":", 1)
        if name.lower() == b"content-length":
            length = int(value)
    stream.read(length)
    return status


def http(port):
    def work(number):
        connection = connect(port)
        stream = connection.makefile("rwb")
        for turn in range(60):
            path = ("/page", "/missing", "/page")[turn % 3]
            stream.write(b"GET %s?q=%d HTTP/1.1\r\nHost: a\r\n\r\n" % (path.encode(), turn))
            stream.flush()
            assert answer(stream) == (404 if path == "/missing" else 200)
            count(path)
        connection.close()

    together(4, work)
    for _ in range(20):  # a request line that is none: refused before it is a request
        with connect(port) as connection:
            connection.sendall(b"\x01\x02 nonsense\r\n\r\n")
            connection.recv(4096)
    for _ in range(200):  # a head that never ends
        connection = connect(port)
        connection.sendall(b"GET /never HTTP/1.1\r\nHost:")
        reset(connection)
    for _ in range(100):  # a whole request by a client that does not wait for the answer
        connection = connect(port)
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.recv(1)
        reset(connection)
        count("/large")


def redis(port):
    def command(stream, *words):
        stream.write(b"*%d\r\n" % len(words))
        for word in words:
            stream.write(b"$%d\r\n%s\r\n" % (len(word), word))
        stream.flush()

    def reply(stream):
        head = stream.readline()
        if head[:1] == b"$" and int(head[1:]) >= 0:
            stream.read(int(head[1:]) + 2)
        elif head[:1] == b"*":
            for _ in range(int(head[1:])):
                reply(stream)
        return head

    def work(number):
        connection = connect(port)
        stream = connection.makefile("rwb")
        for turn in range(50):
            # Errors: of the type (a request), of an unknown name (refused before it is one).
            for words in ((b"set", b"k", b"v"), (b"get", b"k"), (b"lpush", b"k", b"v"),
                          (b"nonsense", b"k")):
                command(stream, *words)
                assert reply(stream)[:1] in (b"+", b"$") or words[0] in (b"lpush", b"nonsense")
                if words[0] != b"nonsense":
                    count(words[0].decode())
            if turn % 10 == 0:  # exec runs what was queued
                for words in ((b"multi",), (b"incr", b"n"), (b"incr", b"n"), (b"exec",)):
                    command(stream, *words)
                    reply(stream)
                    count(words[0].decode())
        connection.close()

    together(4, work)
    for _ in range(200):
        connection = connect(port)
        connection.sendall(b"*3\r\n$6\r\nappend\r\n$1\r\na\r\n$100\r\nbegun")
        reset(connection)
    for _ in range(100):
        connection = connect(port)
        connection.sendall(b"ECHO gone\r\n")
        connection.recv(1)
        reset(connection)
        count("ECHO")


def memcached(port):
    def work(number):
        connection = connect(port)
        stream = connection.makefile("rwb")
        for turn in range(50):
            key = b"key-%d" % number
            for name, line in (("set", b"set %s 0 0 3\r\nabc\r\n" % key), ("get", b"get %s\r\n" % key),
                               ("nonsense", b"nonsense\r\n"), ("delete", b"delete %s\r\n" % key)):
                stream.write(line)
                stream.flush()
                while stream.readline().split()[0] in (b"VALUE", b"abc"):
                    pass
                count(name)
        connection.close()

    together(4, work)
    for _ in range(200):  # a line that never ends
        connection = connect(port)
        connection.sendall(b"gat 0 unfinish")
        reset(connection)
    for _ in range(100):  # the head of a value that never comes
        connection = connect(port)
        connection.sendall(b"touch nothing 0\r\n")
        connection.recv(100)
        connection.sendall(b"add k 0 0 10\r\nabc")
        connection.close()  # what was sent still arrives, which a reset would not promise
        count("touch")
        count("add")


def postgresql(port):
    import psycopg2

    def session():
        connection = psycopg2.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres")
        connection.autocommit = True
        return connection

    def run(cursor, sql):
        count(sql)
        cursor.execute(sql)

    connection = session()
    with connection.cursor() as cursor:
        run(cursor, "CREATE TABLE n AS SELECT true AS yes, random() - random() < -random() AS no")
    connection.close()

    def work(number):
        connection = session()
        cursor = connection.cursor()
        for turn in range(40):
            run(cursor, "SELECT yes FROM n")
            try:
                run(cursor, "SELECT no_such_column FROM n")
            except psycopg2.Error:
                pass
            if turn % 10 == 0:
                for sql in ("BEGIN", "SELECT no FROM n", "ROLLBACK"):
                    run(cursor, sql)
        connection.close()

    together(4, work)

    def cancelled(number):
        connection = session()
        timer = threading.Timer(1, connection.cancel)
        timer.start()
        try:
            run(connection.cursor(),
                "SELECT pg_sleep(extract(epoch from now()) * count(*)) FROM n")
        except psycopg2.errors.QueryCanceled:
            pass
        connection.close()

    together(4, cancelled)
    for _ in range(50):
        connection = session()
        with socket.socket(fileno=os.dup(connection.fileno())) as raw:
            raw.shutdown(socket.SHUT_RDWR)


def mariadb(port):
    import pymysql
    from pymysql.constants import COMMAND

    class Counting(pymysql.connections.Connection):
        def _execute_command(self, command, sql):
            if command == COMMAND.COM_QUERY:
                count(sql if isinstance(sql, str) else bytes(sql).decode())
            super()._execute_command(command, sql)

    def session():
        return Counting(host="127.0.0.1", port=port, user="root", database="test", autocommit=None)

    def work(number):
        connection = session()
        for turn in range(40):
            with connection.cursor() as cursor:
                cursor.execute("SELECT name FROM n")
                try:
                    cursor.execute("SELECT no_such_column FROM n")
                except pymysql.Error:
                    pass
        connection.close()

    connection = session()
    connection.cursor().execute("CREATE TABLE n (name text)")
    connection.close()
    together(4, work)

    def killed(number):
        connection, other = session(), session()
        sql = "SELECT SLEEP(unix_timestamp())"
        connection._execute_command(COMMAND.COM_QUERY, sql)
        time.sleep(0.5)
        if number % 2:
            other.kill(connection.thread_id())
        else:
            reset(connection._sock)
        other.close()

    together(4, killed)
    for _ in range(100):
        connection = session()
        reset(connection._sock)


def disconnects(port, framework):
    """1,000 clients that come and go: at once, amid garbage, amid a request."""
    # Nothing that a binary Thrift server takes for the length of a long string.
    begins = (b"", b"\0\0\0\0", b"\x80\1\0\1\0\0\0\3ad", b"\xff" * 64)
    if framework == "grpc":
        begins += (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",)
    for turn in range(1000):
        connection = connect(port)
        connection.sendall(begins[turn % len(begins)])
        if turn % 2:
            reset(connection)
        else:
            connection.close()


if __name__ == "__main__":
    loads = {"nginx": http, "apache": http, "redis": redis, "memcached": memcached,
             "postgresql": postgresql, "mariadb": mariadb,
             "grpc": lambda port: disconnects(port, "grpc"),
             "thrift": lambda port: disconnects(port, "thrift")}
    loads[sys.argv[1]](int(sys.argv[2]))
    for name, number in sorted(counts.items()):
        print(f"{name}\t{number}")
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(1 if failures else 0)
