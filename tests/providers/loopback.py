"""A scripted model service on 127.0.0.1: real sockets, answers from a list, and a record of what was asked."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One scripted answer; `drop` closes the connection instead, `hold` never answers until the server stops.

    With `pieces` the body is streamed: each is sent on its own, and after the last one the answer ends, or `drop`
    breaks the connection, or `hold` leaves it silent. `gate` is waited for before each piece but the first.
    """

    body: Any = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    hold: bool = False
    pieces: Sequence[bytes] | None = None
    gate: threading.Semaphore | None = None

    def encoded(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass
class Asked:
    """What one request held."""

    path: str
    headers: dict[str, str]
    raw: bytes
    connection: int

    @property
    def body(self) -> Any:
        return json.loads(self.raw.decode("utf-8", "strict"))


class Loopback:
    """Serve `answers` in order, the last one again and again; keep what came in `asked`."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[Asked] = []
        self.arrived = threading.Event()
        self.left = threading.Event()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def script(self, *answers: Answer) -> None:
        self.answers = list(answers)

    def take(self, asked: Asked) -> Answer:
        with self._lock:
            answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
            self.asked.append(asked)
        self.arrived.set()
        return answer

    def close(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _wait_for_the_end(self, connection: socket.socket) -> None:
        """Wait until the test is over or the client has closed its side, and say which."""
        connection.settimeout(0.02)
        while not self._stopped.is_set():
            try:
                if connection.recv(1) == b"":
                    self.left.set()
                    return
            except TimeoutError:
                continue
            except OSError:
                self.left.set()
                return

    def _handler(loopback) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's below
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # headers and body in one write: two small ones meet the kernel's delayed acknowledgement (40 ms)
            wbufsize = -1

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = loopback.take(Asked(self.path, headers, self.rfile.read(length), self.client_address[1]))
                if answer.pieces is not None:
                    self.stream(answer, answer.pieces)
                    return
                if answer.hold or answer.drop:
                    self.vanish(answer)
                    return
                content = answer.encoded()
                self.send_response(answer.status)
                for name, value in {"content-type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def stream(self, answer: Answer, pieces: Sequence[bytes]) -> None:
                self.send_response(answer.status)
                for name, value in {"content-type": "text/event-stream", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                try:
                    for number, piece in enumerate(pieces):
                        if number and answer.gate is not None:
                            answer.gate.acquire(timeout=20)
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"")
                        self.wfile.flush()
                    if answer.hold or answer.drop:
                        self.vanish(answer)
                        return
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    # the client left, which is what some tests are about
                    loopback.left.set()
                    self.close_connection = True

            def vanish(self, answer: Answer) -> None:
                if answer.hold:
                    loopback._wait_for_the_end(self.connection)
                # linger 0: the other side sees a reset, as when a service dies
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True

            def log_message(self, *args: Any) -> None:
                """Keep quiet."""

        return Handler


def chunk(delta: Any = None, finish_reason: Any = None, **more: Any) -> bytes:
    """Make one event of a streamed chat completion; without a delta it has no choices."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    body = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": choices, **more}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def streamed(*deltas: Any, finish_reason: Any = "stop", **more: Any) -> Answer:
    """Make a streamed answer of deltas, ended as OpenAI ends it; texts stand for deltas with content."""
    pieces = [chunk({"content": delta} if isinstance(delta, str) else delta) for delta in deltas]
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}
    return Answer(pieces=[*pieces, chunk({}, finish_reason), chunk(usage=usage), DONE], **more)


def completion(content: Any = "hello", calls: Any = None, finish_reason: Any = "stop", **more: Any) -> dict[str, Any]:
    """Make the JSON of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls is not None:
        message["tool_calls"] = calls
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}},
        **more,
    }


def tool_call(name: str = "read_file", arguments: Any = '{"path": "a"}', **more: Any) -> dict[str, Any]:
    """Make the JSON of one call; without `id` it has none."""
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}
