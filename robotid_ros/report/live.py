# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A page that shows the nodes while they run, served on this machine alone.

The server is tornado's, which serves pages and streams of events from one package without dependencies. The page can do
one thing to the arm: stop it.
"""

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from robotid_ros.errors import DataError, MissingDependencyError
from robotid_ros.report.page import html_page

_WAITING = 200  # messages kept for a browser that does not take them; after that it gets the whole state again
_ANSWER = 10.0  # s that the page waits for the answer to a stop
_HEADER = 'X-Robotid'  # required of a stop: browsers do not let pages of other origins send it

_BODY = """<header><p class="kind">Watching</p><h1>robotid</h1></header>
<div class="stopbar"><button type="button" id="stop">Stop the arm</button><p id="answer" role="status"></p></div>
<main><section><div id="nodes"></div><progress id="progress" max="1" value="0" hidden></progress></section>
<section><h2>Torque</h2><p class="reading" id="waiting">Measured and predicted torque are shown once the
identification has a result.</p>
<figure><figcaption></figcaption><div class="panels" id="torque"></div></figure></section>
<section><h2>Convergence</h2><p class="reading">After each averaged recording: what the model leaves of the torque,
the median deviation of the parameters, and how far the last recording moved them.</p>
<figure><figcaption></figcaption><div class="panels wide"><div class="panel"><div id="convergence" style="height:280px"
role="img" aria-label="Convergence of the identification over the recordings"></div></div></div></figure></section>
</main>
"""


class LiveServer:
    """Serves the page, and sends it what is published, from a thread of its own.

    ``on_stop`` is called when the stop button is pressed and returns a future with the answer as a sentence;
    ``everything`` returns the whole message that a browser gets first, None while there is nothing to show. On any
    address but a loopback one others on the network can stop the arm; port 0 takes any free one.

    Raises
    ------
    MissingDependencyError
        If tornado or plotly is not installed.
    DataError
        If the port is taken.
    """

    def __init__(
        self,
        on_stop: 'Callable[[], Future[str]]',
        everything: Callable[[], dict[str, Any] | None],
        *,
        address: str = '127.0.0.1',
        port: int = 8765,
    ) -> None:
        try:
            from tornado.httpserver import HTTPServer
            from tornado.netutil import bind_sockets
        except ImportError as cause:
            raise MissingDependencyError.of('tornado', 'web', 'serve a page') from cause
        self._clients: set[asyncio.Queue[str]] = set()
        self._everything = everything
        page = html_page('robotid watch', _BODY, {}, script='watch.js')
        try:
            sockets = bind_sockets(port, address)
        except OSError as cause:
            raise DataError(
                f'cannot listen on {address}:{port}: {cause.strerror}; give another --port, or 0 for any free one'
            ) from cause
        self.address = f'http://{address}:{sockets[0].getsockname()[1]}/'
        ready = threading.Event()

        def serve() -> None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
            self._server = HTTPServer(_application(page, on_stop, self._clients, self._first))
            self._server.add_sockets(sockets)
            self._loop.call_soon(ready.set)
            self._loop.run_forever()

        self._thread = threading.Thread(target=serve, name='web', daemon=True)
        self._thread.start()
        ready.wait()

    def publish(self, message: dict[str, Any]) -> None:
        """Send a message to every browser; from any thread."""
        text = _spelled(message)
        self._loop.call_soon_threadsafe(self._send, text)

    def close(self) -> None:
        """End the server."""

        def end() -> None:
            self._server.stop()
            self._loop.stop()

        self._loop.call_soon_threadsafe(end)
        self._thread.join(timeout=5.0)

    def _first(self) -> str | None:
        whole = self._everything()
        return None if whole is None else _spelled({**whole, 'everything': True})

    def _send(self, text: str) -> None:
        for queue in self._clients:
            if queue.full():
                while not queue.empty():
                    queue.get_nowait()
                text = self._first() or text
            queue.put_nowait(text)


def _spelled(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(',', ':'))


def _application(
    page: str, on_stop: 'Callable[[], Future[str]]', clients: 'set[asyncio.Queue[str]]', first: Callable[[], str | None]
) -> Any:
    from tornado.iostream import StreamClosedError
    from tornado.web import Application, HTTPError, RequestHandler

    class Page(RequestHandler):
        def get(self) -> None:
            self.set_header('Cache-Control', 'no-store')
            self.finish(page)

    class Live(RequestHandler):
        async def get(self) -> None:
            self.set_header('Content-Type', 'text/event-stream')
            self.set_header('Cache-Control', 'no-store')
            queue: asyncio.Queue[str] = asyncio.Queue(_WAITING)
            begin = first()
            if begin is not None:
                queue.put_nowait(begin)
            clients.add(queue)
            try:
                while True:
                    self.write(f'data: {await queue.get()}\n\n')
                    await self.flush()
            except StreamClosedError:
                pass
            finally:
                clients.discard(queue)

    class Stop(RequestHandler):
        async def post(self) -> None:
            if _HEADER not in self.request.headers:
                raise HTTPError(403, reason='the stop comes from this page only')
            try:
                answer = await asyncio.wait_for(asyncio.wrap_future(on_stop()), _ANSWER)
            except asyncio.TimeoutError:
                answer = 'the excitation node does not answer: use the stop of the arm itself'
            self.finish({'answer': answer})

    return Application([('/', Page), ('/live', Live), ('/stop', Stop)], log_function=lambda handler: None)
