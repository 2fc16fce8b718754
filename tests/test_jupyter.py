"""The app in a terminal of a Jupyter server: who comes in, what is drawn, what a reload does."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tensortutor.jupyter import COMMAND, NAME, tile

ROOT = Path(__file__).resolve().parents[1]
TOKEN = "of-this-test"
SOCKET = "terminals/websocket/tensortutor"
PATIENCE_S = 120
SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?<>=]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Shows where it would lead."""

    def redirect_request(self, *_):
        return None


def get(address: str) -> tuple[int, str]:
    """A status, and where it leads."""
    try:
        with urllib.request.build_opener(NoRedirect).open(address) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("Location", "")


def listens(port: int) -> bool:
    """Somebody listens at this port."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    """The address of a server with the extension that the package announces."""
    folder = tmp_path_factory.mktemp("jupyter")
    config = folder / "config" / "jupyter_server_config.d"
    config.mkdir(parents=True)
    (config / "tensortutor.json").write_text((ROOT / "jupyter/tensortutor.json").read_text())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ, "TENSORTUTOR_HOME": str(folder / "home"), "JUPYTER_NO_CONFIG": "",
        "JUPYTER_CONFIG_DIR": str(folder / "config"), "PYTHONPATH": str(ROOT),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"), "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    words = [
        "--no-browser", f"--port={port}", "--ServerApp.port_retries=0", "--allow-root",
        f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    log = folder / "log"
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *words], env=environment, stdout=file,
            stderr=file,
        )  # fmt: skip
    end = time.monotonic() + PATIENCE_S
    # It says that it runs before it listens.
    while "is running at" not in log.read_text("utf-8", "replace") or not listens(port):
        assert process.poll() is None, log.read_text("utf-8", "replace")
        assert time.monotonic() < end, log.read_text("utf-8", "replace")
        time.sleep(0.05)
    yield f"127.0.0.1:{port}"
    process.terminate()
    process.wait(PATIENCE_S)


async def page(server: str) -> WebSocketClientConnection:
    """A page with the terminal."""
    headers = {"Authorization": f"token {TOKEN}", "Origin": f"http://{server}"}
    one = await websocket_connect(HTTPRequest(f"ws://{server}/{SOCKET}", headers=headers))
    one.write_message(json.dumps(["set_size", 40, 120, 800, 1200]))
    return one


async def shown(page: WebSocketClientConnection, *words: str) -> str:
    """All that the page was sent, until it has these words."""
    text = ""

    async def read() -> str:
        nonlocal text
        while not all(word in SEQUENCE.sub("", text) for word in words):
            message = await page.read_message()
            assert message is not None, f"closed: {text[-2000:]}"
            kind, *rest = json.loads(message)
            text += rest[0] if kind == "stdout" else ""
        return text

    try:
        return await asyncio.wait_for(read(), PATIENCE_S)
    except TimeoutError:
        raise AssertionError(f"never seen: {words}\n{SEQUENCE.sub('', text)[-3000:]}") from None


def test_the_launchers_tile_leads_to_the_address_and_has_an_icon():
    entry = tile()["launcher_entry"]
    assert entry["path_info"] == NAME == "tensortutor"
    assert Path(entry["icon_path"]).read_text("utf-8").startswith("<svg")


def test_the_app_imports_nothing_from_the_servers_folder(tmp_path: Path):
    for name in ("argparse", "textual", "tensortutor"):
        (tmp_path / f"{name}.py").write_text("print('imported', __file__)\n")
    done = subprocess.run(
        [*COMMAND, "--version"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("tensortutor "), done.stderr


def test_nobody_comes_in_without_the_servers_token(server):
    status, where = get(f"http://{server}/tensortutor")
    assert (status, where) == (302, "/login?next=%2Ftensortutor")
    assert get(f"http://{server}/tensortutor?token=wrong")[0] == 302


@pytest.mark.parametrize(
    ("cookie", "origin", "status"),
    [(True, "http://elsewhere.example", 403), (False, "", 403), (True, "", 101)],
)
def test_no_other_page_and_no_other_user_reaches_the_terminal(server, cookie, origin, status):
    host, _, port = server.partition(":")
    with contextlib.closing(http.client.HTTPConnection(host, int(port))) as connection:
        connection.request("GET", f"/tensortutor?token={TOKEN}")
        with connection.getresponse() as answer:
            known = "; ".join(one.partition(";")[0] for one in answer.headers.get_all("Set-Cookie"))
        headers = {
            "Cookie": known if cookie else "", "Origin": origin or f"http://{server}",
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }  # fmt: skip
        connection.request("GET", f"/{SOCKET}", headers=headers)
        assert connection.getresponse().status == status


async def test_the_app_is_drawn_in_the_pages_size_and_again_after_a_reload(server):
    assert get(f"http://{server}/tensortutor?token={TOKEN}") == (302, "/terminals/tensortutor")
    first = await page(server)
    await shown(first, "PyTorch, seen from inside", "Palette")
    first.write_message(json.dumps(["stdin", "\r"]))
    await shown(first, "Every lesson has text, code and results")
    first.close()
    # The same address leads to the same terminal, and the new page gets the whole picture.
    assert get(f"http://{server}/tensortutor?token={TOKEN}") == (302, "/terminals/tensortutor")
    second = await page(server)
    text = await shown(second, "Every lesson has text, code and results", "F1 Help")
    assert "\x1b[?1049h" in text
    assert re.search(r"\x1b\[40;\d+H", text)  # in the last row of the window's 40
    # A late reply to what the first page was asked is no key: no search is opened by its "/".
    second.write_message(json.dumps(["stdin", "\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?1;2c"]))
    second.write_message(json.dumps(["stdin", "\x1b[19~"]))  # F8
    await shown(second, "See it run")
    second.write_message(json.dumps(["stdin", "\x11"]))  # Ctrl+Q
    while await second.read_message() is not None:
        pass
    second.close()
