"""Serves the model: a line with a prompt and a number of tokens comes in, a line for each token goes out as soon as it is known."""

import json
import os
import socketserver

from model import Model

MODEL = Model()


class Talk(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    def handle(self) -> None:
        for line in self.rfile:
            request = json.loads(line)
            for token in MODEL.generate(request["prompt"], request["tokens"]):
                self.wfile.write(f"{token}\n".encode())


socketserver.TCPServer.allow_reuse_address = True
with socketserver.ThreadingTCPServer(("127.0.0.1", int(os.environ["HOLDPOINT_PORT"])), Talk) as server:
    server.daemon_threads = True
    server.serve_forever()
