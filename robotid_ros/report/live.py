# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A run while it goes on: a view for the terminal, and a page served on this machine.

The server is tornado's, which serves pages and streams of events from one package without dependencies. The page can do
one thing to the arm: stop it. The stop is a plain form, so that it needs neither scripts nor charts.

The caller reads the topics; nothing here imports ROS.
"""

import asyncio
import json
import re
import secrets
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from ipaddress import ip_address
from string import Template
from typing import Any, Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.messages import FAULTS
from robotid_ros.errors import DataError, MissingDependencyError
from robotid_ros.report.page import html_page

StatusLevel: TypeAlias = Literal['ok', 'warn', 'error', 'silent']

_SIGNS: dict[StatusLevel, tuple[str, str]] = {
    'ok': ('●', '32'),
    'warn': ('▲', '33'),
    'error': ('■', '31'),
    'silent': ('○', '2'),
}
_BAR = 24
_STANDSTILL = 0.02  # joint speed below which the friction is not known [rad/s or m/s]
SAMPLES = 1500  # of a curve that a page which is opened late still gets
_APART = 0.05  # between two samples of the motion [s]: 75 s are kept
_WAITING = 200  # messages kept for a browser that does not take them; after that it gets the whole state again
_ANSWER = 10.0  # s that the page waits for the answer to a stop
_LOOPBACK = ('127.0.0.1', '[::1]', 'localhost')
_HEADERS = {
    'Cache-Control': 'no-store',
    'Content-Security-Policy': "frame-ancestors 'none'; form-action 'self'; base-uri 'none'",
    'X-Frame-Options': 'DENY',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'same-origin',  # no-referrer would take the Origin from the form
}
_BODY = """<header><p class="kind">Watching</p><h1>robotid</h1></header>
<form class="stopbar" id="stopbar" method="post" action="stop"><button type="submit" id="stop">Stop the arm</button>
<div><p id="answer" role="status"></p>
<p id="last"><noscript>Without scripts this page shows no state of the nodes; the stop works.</noscript></p>
</div></form>
<script>
$stop
</script>
<main><section><div id="nodes"></div><progress id="progress" max="1" value="0" hidden></progress></section>
<section><h2>Motion</h2><p class="reading" id="still">Positions are shown once a joint state has come.</p>
<p class="reading" id="limits" hidden>Dotted: the limits of the robot's description.</p>
<figure><figcaption></figcaption><div class="panels" id="motion"></div></figure></section>
<section><h2>Effort and torque</h2><p class="reading" id="waiting">Efforts are shown as the joint states report them;
measured and predicted torque, once the identification has a result.</p>
<figure><figcaption></figcaption><div class="panels" id="torque"></div></figure></section>
<section id="converging" hidden><h2>Convergence</h2>
<p class="reading">After each averaged recording: what the model leaves of the torque,
the median deviation of the parameters, and how far the last recording moved them.</p>
<figure><figcaption></figcaption><div class="panels wide"><div class="panel"><div id="convergence" style="height:280px"
role="img" aria-label="Convergence of the identification over the recordings"></div></div></div></figure></section>
</main>
"""
_ANSWER_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>robotid watch</title></head>
<body><p>$answer</p><form method="post" action="stop"><button type="submit">Stop the arm</button></form>
<p><a href="./">Back to the page</a></p></body></html>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """The last status of a node, with the values of its ``DiagnosticStatus``; silent where nothing came for long."""

    name: str
    level: StatusLevel
    message: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class JointFit:
    """Running root mean squares of measured and unexplained torque.

    After ``memory`` seconds an old sample counts a third.
    """

    joint_names: tuple[str, ...]
    memory: float = 10.0
    _time: float | None = None
    _power: Array = field(init=False)

    def __post_init__(self) -> None:
        self._power = np.zeros((2, len(self.joint_names)))

    def update(self, time: float, predicted: Array, external: Array, velocity: Array | None = None) -> None:
        """Take one sample of predicted and unexplained torque, each of shape (n,) [N m], at a stamp [s].

        Joints that stand, by their ``velocity`` [rad/s], are left as they were: at standstill friction is
        anything between two bounds, and no model explains it.
        """
        squares = np.square([predicted + external, external])
        moving = np.ones(len(external), bool) if velocity is None else np.abs(velocity) > _STANDSTILL
        if self._time is None or time <= self._time:
            self._power = np.where(moving, squares, 0.0)
        else:
            share = 1.0 - np.exp((self._time - time) / self.memory)
            self._power += np.where(moving, share * (squares - self._power), 0.0)
        self._time = time

    @property
    def torque_rms(self) -> Array:
        """Measured torque, shape (n,) [N m]."""
        return np.asarray(np.sqrt(self._power[0]))

    @property
    def error_rms(self) -> Array:
        """What the model leaves of it, shape (n,) [N m]."""
        return np.asarray(np.sqrt(self._power[1]))

    @property
    def explained(self) -> list[float | None]:
        """Part of each joint's torque that the model explains, 0 to 1; None where the joint has not moved yet."""
        both = zip(self.torque_rms.tolist(), self.error_rms.tolist(), strict=True)
        return [None if torque == 0.0 else max(0.0, 1.0 - error / torque) for torque, error in both]


MotionSample: TypeAlias = tuple[float, list[float], list[float] | None, list[float] | None]
"""Stamp [s], position, reference where there is one, effort where it is reported."""


class MotionView:
    """What the arm does: positions, efforts, the reference beside them and the limits around them.

    The joints are those of the reference; before one came, those of the joint states. ``samples`` are at least 0.05 s
    apart.
    """

    def __init__(self) -> None:
        self.joint_names: tuple[str, ...] = ()
        self.limits: dict[str, tuple[float, float]] = {}
        self.sliding: set[str] = set()  # joints that count in m
        self.reference: tuple[float, Array, Array] | None = None  # its first instant, times and positions of a period
        self.samples: deque[MotionSample] = deque(maxlen=SAMPLES)
        self.reports = False

    def take(self, stamp: float, names: tuple[str, ...], position: Sequence[float], effort: Sequence[float]) -> bool:
        """Take a joint state, unless the last one was taken just before or it lacks joints; return whether it was."""
        if self.samples and 0.0 <= stamp - self.samples[-1][0] < _APART:
            return False
        self.joint_names = self.joint_names or names
        wanted = self.joint_names
        if len(position) != len(names) or not set(wanted) <= set(names):
            return False
        where = [names.index(name) for name in wanted]
        q = [float(position[k]) for k in where]
        tau = [float(effort[k]) for k in where] if len(effort) == len(names) else None
        if tau is not None and not np.isfinite(tau).all():
            tau = None
        if not np.isfinite(q).all():
            return False
        self.reports = self.reports or tau is not None
        if self.samples and (stamp < self.samples[-1][0] or len(self.samples[-1][1]) != len(q)):
            self.samples.clear()
        self.samples.append((stamp, q, self._expected(stamp), tau))
        return True

    def _expected(self, stamp: float) -> list[float] | None:
        if self.reference is None or len(self.joint_names) != self.reference[2].shape[1]:
            return None
        begin, time, q = self.reference
        if stamp < begin:
            return None
        now = (stamp - begin) % time[-1] if time[-1] > 0.0 else 0.0  # both ends of the period are there
        return [float(np.interp(now, time, q[:, j])) for j in range(q.shape[1])]

    def message(self, samples: list[MotionSample], start: float) -> dict[str, Any]:
        """Return some of the samples and what they are of, as the page takes it; times count from the start [s]."""
        names = self.joint_names
        samples = [sample for sample in samples if len(sample[1]) == len(names)]
        limits = [self.limits.get(name, (-np.inf, np.inf)) for name in names]
        _, position, expected, _ = self.samples[-1] if self.samples else (0.0, [], None, None)
        units = ['m' if name in self.sliding else 'rad' for name in names]
        return {
            'joints': list(names),
            'limits': [[end if np.isfinite(end) else None for end in ends] for ends in limits],
            'units': units,
            'notes': [
                f'off its reference by {abs(a - b):.2g} {unit}'
                for a, b, unit in zip(position, expected or [], units, strict=False)
            ],
            'reports': self.reports,
            't': [round(sample[0] - start, 3) for sample in samples],
            'position': [sample[1] for sample in samples],
            'reference': [sample[2] for sample in samples],
            'effort': [sample[3] for sample in samples],
        }


def page_message(
    nodes: Sequence[NodeStatus],
    fit: JointFit | None,
    motion: MotionView,
    torque: Sequence[tuple[float, list[float], list[float]]],
    moved: list[MotionSample],
    start: float,
) -> dict[str, Any]:
    """Return what the page draws: the nodes, the first of which tells the progress, the fit and the motion.

    ``torque`` and ``moved`` are samples of measured and predicted torque, and of the motion; times count from the start
    [s].
    """
    shares = [] if fit is None else fit.explained
    return {
        'nodes': [
            {'name': n.name, 'level': n.level, 'message': n.message, 'details': status_details(n)} for n in nodes
        ],
        'progress': progress_share(nodes[0].values),
        'joints': [] if fit is None else list(fit.joint_names),
        'notes': ['has not moved yet' if share is None else f'{100.0 * share:.0f} % explained' for share in shares],
        'fitted': fit is not None,
        'motion': motion.message(moved, start),
        'samples': {
            't': [round(sample[0] - start, 3) for sample in torque],
            'measured': [sample[1] for sample in torque],
            'predicted': [sample[2] for sample in torque],
        },
    }


def render_watch(
    nodes: Sequence[NodeStatus], fit: JointFit | None = None, *, width: int = 80, colour: bool = False
) -> str:
    """Return the view as lines of text: the nodes from top to bottom, and the fit once a model has been identified.

    Lines are cut at ``width`` columns; with ``colour``, levels are marked by ANSI colours too.
    """
    lines: list[str] = []
    for node in nodes:
        sign, code = _SIGNS[node.level]
        mark = f'\033[{code}m{sign}\033[0m' if colour else sign
        head = f' {node.name:<15}{node.message or "no status yet"}'
        lines.append(mark + _cut(head, width - 1))
        lines += [_cut(f'{"":17}{line}', width) for line in status_details(node)]
    if fit is not None:
        longest = max(len(name) for name in fit.joint_names)
        lines += ['', _cut(f'{"joint":<{longest}}  {"torque":>8}  {"left":>8}  explained', width)]
        rows = zip(fit.joint_names, fit.torque_rms, fit.error_rms, fit.explained, strict=True)
        for name, torque, error, share in rows:
            said = f'{"has not moved yet":>18}'
            if share is not None:
                said = f'{torque:8.3g}  {error:8.3g}  {_bar(share)} {100.0 * share:3.0f} %'
            lines.append(_cut(f'{name:<{longest}}  {said}', width))
    return '\n'.join(lines)


def status_details(node: NodeStatus) -> list[str]:
    """Return the values of a status in words, a line each, without what its message says already."""
    values, lines = node.values, []

    def new(*phrases: str) -> str:
        return ', '.join(phrase for phrase in phrases if phrase and phrase not in node.message)

    share = progress_share(values)
    if share is not None:
        elapsed, duration = float(values['elapsed']), float(values['duration'])
        bar = f'{_bar(share)} {max(elapsed, 0.0):.0f} of {duration:.0f} s'
        lines.append(f'{new(values.get("phase", ""))}  {bar}'.lstrip())
        error = _number(values, 'tracking_error')
        if error is not None:
            lines.append(f'tracking error {error:.2g} rad')
    if 'rate' in values:
        faults = ', '.join(f'{values[name]} {name.replace("_", " ")}' for name in FAULTS if name in values)
        lines.append(new(f'{values["rate"]} Hz', f'{values.get("messages", "0")} messages', faults or 'no gaps'))
    if 'periods_averaged' in values:
        lines.append(new(f'{values["periods_averaged"]} periods averaged', f'{values["periods_left_out"]} left out'))
    error = _number(values, 'relative_error')
    if error is not None:
        condition = f'condition number {values.get("condition_number", "?")}'
        change = _number(values, 'change')  # none where the recording is the first
        moved = '' if change is None or not np.isfinite(change) else f'last change {values["change"]}'
        lines.append(new(f'{error:.1f} % of the torque unexplained', condition, moved))
    if 'worst_parameter' in values:
        name = values['worst_parameter']
        asked = _number(values, 'deviation_asked')
        wanted = f', asked {values["deviation_asked"]} %' if asked else ''
        known = f'{name} {values.get(f"parameter/{name}", "")}'
        lines.append(f'least known: {known}, deviation {values["worst_deviation"]} %{wanted}')
    return [line for line in lines if line]


def progress_share(values: Mapping[str, str]) -> float | None:
    """Return how much of a run is done, 0 to 1, or None while nothing runs."""
    elapsed, duration = _number(values, 'elapsed'), _number(values, 'duration')
    if elapsed is None or duration is None or not duration > 0.0:
        return None
    return min(max(elapsed / duration, 0.0), 1.0)


def _bar(share: float) -> str:
    filled = round(_BAR * share)
    return '█' * filled + '·' * (_BAR - filled)


def _number(values: Mapping[str, str], name: str) -> float | None:
    try:
        return float(values[name])
    except (KeyError, ValueError):
        return None


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + '…'


class LiveServer:
    """Serves the page, and sends it what is published, from a thread of its own.

    ``on_stop`` is called when the stop button is pressed and returns a future with the answer as a sentence;
    ``everything`` returns the whole message that a browser gets first, None while there is nothing to show. Port 0
    takes any free one. ``address`` is what to open in a browser. On any but a loopback address it holds a token made
    for this server, and who has that can stop the arm.

    Raises a MissingDependencyError if tornado or plotly is not installed. Raises a DataError if the port is taken.
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
        script = (files('robotid_ros.report') / 'templates' / 'stop.js').read_text(encoding='utf-8')
        page = html_page('robotid watch', _BODY.replace('$stop', script), {}, script='watch.js')
        try:
            sockets = bind_sockets(port, address)
        except OSError as cause:
            raise DataError(
                f'cannot listen on {address}:{port}: {cause.strerror}; give an --address of this machine and a '
                'free --port (0: any)'
            ) from cause
        local = all(ip_address(each.getsockname()[0]).is_loopback for each in sockets)
        first = ip_address(sockets[0].getsockname()[0])
        host = socket.gethostname() if first.is_unspecified else f'[{first}]' if first.version == 6 else str(first)
        # A loopback server is for this machine's browser alone, which must call it by a name of this machine: a page of
        # elsewhere whose name is made to point here does not. Beyond it, the token is what a foreign page cannot know.
        below = '/' if local else f'/{secrets.token_urlsafe(16)}/'
        self.address = f'http://{host}:{sockets[0].getsockname()[1]}{below}'
        ready = threading.Event()

        def serve() -> None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
            self._server = HTTPServer(
                _application(page, on_stop, self._clients, self._first, below, _LOOPBACK if local else ())
            )
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

        async def end() -> None:
            self._server.stop()
            await self._server.close_all_connections()
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
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
    page: str,
    on_stop: 'Callable[[], Future[str]]',
    clients: 'set[asyncio.Queue[str]]',
    first: Callable[[], str | None],
    below: str,
    names: Sequence[str],
) -> Any:
    """Return what answers below a path, to requests for one of some host names (any, where there are none)."""
    from tornado.iostream import StreamClosedError
    from tornado.web import Application, HTTPError, RequestHandler

    class Handler(RequestHandler):
        def set_default_headers(self) -> None:
            for name, value in _HEADERS.items():
                self.set_header(name, value)

        def prepare(self) -> None:
            host = self.request.host
            if names and re.sub(r':\d+$', '', host).lower() not in names:
                raise HTTPError(403, reason='this page is for the browser of this machine')
            # A browser says where a form comes from; one that says nothing is not believed with a stop.
            origin = self.request.headers.get('Origin')
            if (origin is not None or self.request.method == 'POST') and origin not in (
                f'http://{host}',
                f'https://{host}',
            ):
                raise HTTPError(403, reason='the stop comes from this page only')

    class Page(Handler):
        def get(self) -> None:
            self.finish(page)

    class Live(Handler):
        async def get(self) -> None:
            self.set_header('Content-Type', 'text/event-stream')
            queue: asyncio.Queue[str] = asyncio.Queue(_WAITING)
            begin = first()
            if begin is not None:
                queue.put_nowait(begin)
            clients.add(queue)
            try:
                self.write(': connected\n\n')
                await self.flush()
                while True:
                    self.write(f'data: {await queue.get()}\n\n')
                    await self.flush()
            except StreamClosedError:
                pass
            finally:
                clients.discard(queue)

    class Stop(Handler):
        async def post(self) -> None:
            try:
                answer = await asyncio.wait_for(asyncio.wrap_future(on_stop()), _ANSWER)
            except asyncio.TimeoutError:
                answer = 'the excitation node does not answer: use the stop of the arm itself'
            if 'application/json' in self.request.headers.get('Accept', ''):
                self.finish({'answer': answer})
            else:  # the form without scripts
                self.finish(Template(_ANSWER_PAGE).substitute(answer=escape(answer)))

    class Nothing(Handler):
        def prepare(self) -> None:
            super().prepare()
            raise HTTPError(404)

    handlers = [(below, Page), (f'{below}live', Live), (f'{below}stop', Stop)]
    return Application(handlers, default_handler_class=Nothing, log_function=lambda handler: None)
