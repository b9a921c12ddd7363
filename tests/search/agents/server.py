"""An OpenAI-compatible endpoint on this machine that answers from a script.

For tests and for docs/guide/generated_sources.md:

python -m tests.search.agents.server --script softmax --port 8399
"""

import argparse
import contextlib
import dataclasses
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SOURCES = Path(__file__).parent / "sources"
ADVICE = "CHANGE: compute each exponential once and let the compiler use vector instructions."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer of the endpoint."""

    text: str = ""
    finish: str = "stop"
    refusal: str | None = None
    status: int = 200
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes | None = None
    """In place of an answer of the protocol."""
    seconds: float = 0.0
    """Before it is sent."""
    drip: float = 0.0
    """Seconds between any two bytes."""
    hang_up: bool = False
    """Close the connection in the middle of it."""
    counts: bool = True
    """Whether it says how many tokens there were."""
    echo: bool = False
    """Put the request's own headers into the text."""


def code(name: str, fence: str = "cpp", before: str = "Here it is:") -> Reply:
    """A source of the folder `sources`, as models answer."""
    return Reply(text=f"{before}\n\n```{fence}\n{(SOURCES / name).read_text()}```\n")


def failing(status: int, message: str, *, error: str = "", **headers: str) -> Reply:
    """An error in the protocol's own form."""
    body = json.dumps({"error": {"message": message, "type": "error", "code": error or None}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, headers={"Content-Type": "application/json", **named}, body=body)


@dataclasses.dataclass
class Script:
    """What is answered, in order; the last answer of the coder is repeated when there is no further one."""

    coder: Sequence[Reply]
    judge: Sequence[Reply] = (Reply(text=ADVICE),)
    asked: list[dict] = dataclasses.field(default_factory=list)
    """Every request that came, in order."""
    authorizations: list[str] = dataclasses.field(default_factory=list)
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    _turns: dict[str, int] = dataclasses.field(default_factory=lambda: {"coder": 0, "judge": 0})

    def next(self, request: dict, authorization: str) -> Reply:
        """The answer to a request."""
        role = "judge" if request["messages"][0]["content"].startswith("You advise") else "coder"
        with self._lock:
            self.asked.append(request)
            self.authorizations.append(authorization)
            replies = self.judge if role == "judge" else self.coder
            turn = self._turns[role]
            self._turns[role] += 1
            return replies[min(turn, len(replies) - 1)]


def softmax() -> Script:
    """What models do: right, wrong, cheating, broken, slow, refusing, malformed and busy."""
    return Script(
        coder=[
            code("wrong.cpp"),
            code("once.cpp"),
            Reply(text="I think that vectors would help."),
            code("broken.cpp"),
            code("cheating.cpp"),
            failing(429, "Rate limit reached", Retry_After="1"),
            code("vectors.cpp"),
            code("slow.cpp"),
            Reply(text="I'm sorry, but I can't help with that."),
            failing(503, "Overloaded"),
            code("once.cpp"),
            code("prying.cpp"),
            code("wrong.cpp", fence="python"),
        ],
        judge=[
            Reply(text="The exponential dominates.\n\nCHANGE: compute each exponential once, keep it in y."),
            Reply(text=ADVICE),
        ],
    )


SCRIPTS = {"softmax": softmax}


@contextlib.contextmanager
def serving(script: Script, port: int = 0) -> Iterator[str]:
    """Serve a script on the loopback interface; yields the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(script))
    server.daemon_threads = True
    thread = threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path != "/v1/chat/completions":
                self.send_error(404)
                return
            request = json.loads(content)
            reply = script.next(request, self.headers.get("Authorization", ""))
            time.sleep(reply.seconds)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._send(reply, request)

        def _send(self, reply: Reply, request: dict) -> None:
            text = f"{reply.text}\n{self.headers}" if reply.echo else reply.text
            plain = dataclasses.replace(reply, text=text)
            body = reply.body if reply.body is not None else completion(plain, request)
            self.send_response(reply.status)
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **reply.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if reply.hang_up:
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                self.close_connection = True
                return
            if not reply.drip:
                self.wfile.write(body)
                return
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(reply.drip)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def completion(reply: Reply, request: dict) -> bytes:
    """An answer of the protocol; tokens are counted as four characters each."""
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    answer = {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": f"{request['model']}-scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
    }
    if reply.counts:
        prompt = sum(len(each["content"]) for each in request["messages"]) // 4
        written = len(reply.text) // 4
        answer["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
        }
    return json.dumps(answer).encode()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.search.agents.server", description=__doc__)
    parser.add_argument("--script", choices=sorted(SCRIPTS), default="softmax")
    parser.add_argument("--port", type=int, default=8399)
    options = parser.parse_args()
    with serving(SCRIPTS[options.script](), options.port) as url:
        print(f"serving {options.script} at {url}; end with Ctrl-C", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
