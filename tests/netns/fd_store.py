#!/usr/bin/env python3
"""What systemd does for a service with FileDescriptorStoreMax=: fd_store.py SOCKET COMMAND...

Starts the command, keeps the descriptors that it hands over (FDSTORE=1), and starts it again with them whenever it ends.
SIGTERM ends both, and closes what was kept.
"""
import os
import signal
import socket
import sys

FIRST = 3  # SD_LISTEN_FDS_START


def child(path, command, store):
    """Runs the command with what is kept, as descriptors 3 and up."""
    # Out of the way first: a descriptor may lie where another one is to be.
    high = [os.dup2(fd, FIRST + len(store) + 100 + i, inheritable=True) for i, fd in enumerate(store.values())]
    for i, fd in enumerate(high):
        os.dup2(fd, FIRST + i, inheritable=True)
        os.close(fd)
    env = dict(os.environ, NOTIFY_SOCKET=path)
    if store:
        env.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(store)), LISTEN_FDNAMES=":".join(store))
    os.execvpe(command[0], command, env)


def main():
    path, command = sys.argv[1], sys.argv[2:]
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(path)
    sock.settimeout(0.02)
    store, pid = {}, 0

    def end(*_):
        if pid:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    while True:
        if not pid:
            pid = os.fork()
            if not pid:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                child(path, command, store)
        try:
            message, fds, _, _ = socket.recv_fds(sock, 4096, 16)
        except TimeoutError:
            # Only when all it said has been read: what it handed over last counts.
            if os.waitpid(pid, os.WNOHANG)[0]:
                pid = 0
            continue
        said = dict(line.split("=", 1) for line in message.decode().splitlines())
        name = said.get("FDNAME", "stored")
        if said.get("FDSTORE") == "1" and said.get("FDPOLL") == "0":
            if name in store:
                os.close(store[name])
            store[name] = fds.pop(0)
        elif said.get("FDSTOREREMOVE") == "1" and name in store:
            os.close(store.pop(name))
        for fd in fds:
            os.close(fd)


main()
