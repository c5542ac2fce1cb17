# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The live page in a real browser, beside the real nodes, each in a process of its own."""

import base64
import http.client
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from report_helpers import UR10E, Chromium, find_chromium, small_design
from ros_helpers import NodeProcess, ros_environment, wait_until

pytest.importorskip('tornado', reason='the web extra is not installed')
pytest.importorskip('plotly', reason='the web extra is not installed')

from robotid_ros.errors import DataError
from robotid_ros.model.urdf_tree import parse_urdf
from robotid_ros.report.live import LiveServer

WATCH = ['-m', 'robotid_ros', 'watch', '--web', '--port', '0', '--interval', '0.1']


def _request(
    address: str, method: str, path: str, headers: dict[str, str] | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(address.removeprefix('http://').rstrip('/'), timeout=20.0)
    connection.request(method, path, headers=headers or {})
    answer = connection.getresponse()
    found = answer.status, answer.read(), answer.headers
    connection.close()
    return found


def _never() -> 'Future[str]':
    raise AssertionError('nobody asked for a stop')


class _Pressed:
    """Counts the stops, and answers each."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> 'Future[str]':
        self.count += 1
        answer: Future[str] = Future()
        answer.set_result('the arm is <b>brought</b> to rest')
        return answer


def test_the_server_has_one_route_that_does_something_and_asks_where_it_comes_from() -> None:
    pressed = _Pressed()
    server = LiveServer(pressed, lambda: None, port=0)
    try:
        assert re.match(r'http://127\.0\.0\.1:\d+/$', server.address)
        own = server.address.rstrip('/')
        port = int(own.rpartition(':')[2])
        status, page, headers = _request(server.address, 'GET', '/')
        assert status == 200
        assert b'Stop the arm' in page
        assert "frame-ancestors 'none'" in headers['Content-Security-Policy']
        assert headers['X-Frame-Options'] == 'DENY'
        for refused in (
            {},  # says nothing
            {'Origin': 'http://evil.example'},
            {'Origin': 'null'},  # a page in a sandbox
            {'Origin': 'http://127.0.0.1:1'},  # another server of this machine
            {'Origin': f'http://evil.example:{port}', 'Host': f'evil.example:{port}'},  # a name made to point here
            {'Origin': 'http://127.0.0.1.evil.example', 'Host': '127.0.0.1.evil.example'},
        ):
            assert _request(server.address, 'POST', '/stop', refused)[0] == 403, refused
        for path in ('/', '/live', '/nothing'):
            assert _request(server.address, 'GET', path, {'Host': f'evil.example:{port}'})[0] == 403, path
        assert pressed.count == 0
        status, answer, _ = _request(server.address, 'POST', '/stop', {'Origin': own, 'Accept': 'application/json'})
        assert (status, answer) == (200, b'{"answer": "the arm is <b>brought<\\/b> to rest"}')
        status, answer, _ = _request(server.address, 'POST', '/stop', {'Origin': own})  # a form without scripts
        assert status == 200
        assert b'the arm is &lt;b&gt;brought' in answer
        forwarded = {'Host': 'localhost:9999', 'Origin': 'http://localhost:9999'}  # ssh -L 9999:127.0.0.1:8765
        assert _request(server.address, 'POST', '/stop', forwarded)[0] == 200
        assert pressed.count == 3
        for method, path in (('GET', '/stop'), ('POST', '/'), ('POST', '/start'), ('GET', '/../setup.py')):
            assert _request(server.address, method, path, {'Origin': own})[0] in (404, 405)
        with pytest.raises(DataError, match='a free --port'):
            LiveServer(_never, lambda: None, port=port)
    finally:
        server.close()


def test_beyond_this_machine_the_address_holds_a_token() -> None:
    pressed = _Pressed()
    server = LiveServer(pressed, lambda: None, address='0.0.0.0', port=0)
    other = LiveServer(_never, lambda: None, address='0.0.0.0', port=0)
    try:
        found = re.match(r'http://[^/]+:(\d+)/([\w-]{20,})/$', server.address)
        assert found is not None
        assert found[2] != other.address.rstrip('/').rpartition('/')[2]
        local = f'http://127.0.0.1:{found[1]}/'
        for path in ('/', '/live', '/stop', f'/{found[2][:-1]}/'):
            assert _request(local, 'GET', path)[0] == 404, path
        own = {'Origin': local.rstrip('/')}
        assert _request(local, 'POST', '/stop', own)[0] == 404
        assert _request(local, 'POST', f'/{found[2]}/stop', {'Origin': 'http://evil.example'})[0] == 403
        assert pressed.count == 0
        assert _request(local, 'GET', f'/{found[2]}/')[0] == 200
        assert _request(local, 'POST', f'/{found[2]}/stop', own)[0] == 200
        assert pressed.count == 1
    finally:
        server.close()
        other.close()


@pytest.fixture(scope='module')
def browser() -> Iterator[Chromium]:
    chromium = Chromium(find_chromium())
    try:
        yield chromium
    finally:
        chromium.close()


def test_the_stop_works_without_scripts_and_without_charts(browser: Chromium) -> None:
    pressed = _Pressed()
    server = LiveServer(pressed, lambda: _message(stoppable=True), port=0)
    try:
        browser.call('Emulation.setScriptExecutionDisabled', value=True)
        browser.go(server.address, 390)
        browser.call('Emulation.setScriptExecutionDisabled', value=False)
        browser.evaluate("HTMLFormElement.prototype.submit.call(document.getElementById('stopbar'))")
        wait_until(lambda: pressed.count == 1, 'the form is sent')
        wait_until(lambda: 'brought' in _text(browser, 'p'), 'the answer is a page')

        # A browser that cannot unpack the charts: state and stop are there, and it is said.
        hide = browser.call('Page.addScriptToEvaluateOnNewDocument', source='delete window.DecompressionStream')
        browser.go(server.address, 390)
        browser.call('Page.removeScriptToEvaluateOnNewDocument', identifier=hide['identifier'])
        wait_until(lambda: 'cannot unpack' in _text(browser, '#still'), 'it says so')
        wait_until(lambda: 'idle' in _text(browser, '.node'), 'the state of the nodes')
        browser.evaluate("document.getElementById('stop').click()")
        wait_until(lambda: 'brought' in _text(browser, '#answer'), 'the answer')
        assert pressed.count == 2
    finally:
        browser.call('Emulation.setScriptExecutionDisabled', value=False)
        server.close()


def test_the_stop_is_grey_with_the_reason_until_it_can_be_answered(browser: Chromium) -> None:
    def grey() -> bool:
        return bool(browser.evaluate("document.getElementById('stopbar').classList.contains('grey')"))

    server = LiveServer(_Pressed(), lambda: None, port=0)
    try:
        browser.go(server.address, 1000)
        wait_until(lambda: 'first message' in _text(browser, '#last'), 'connected, and nothing has come')
        assert grey()
        server.publish(_message(stoppable=False))
        wait_until(lambda: 'No excitation node' in _text(browser, '#last'), 'nobody to stop')
        assert grey()
        server.publish(_message(stoppable=True))
        wait_until(lambda: not grey(), 'an excitation node is there')
        assert 'Last message at' in _text(browser, '#last')
        wait_until(grey, 'nothing comes any more')
        assert 'Nothing comes' in _text(browser, '#last')
    finally:
        server.close()
    wait_until(lambda: 'is lost' in _text(browser, '#last'), 'the server has ended')


def _message(*, stoppable: bool) -> dict[str, object]:
    nodes = [{'name': 'excitation', 'level': 'ok', 'message': 'idle', 'details': []}]
    motion = {'joints': [], 'units': [], 'limits': [], 'notes': [], 'reports': False}
    motion |= {name: [] for name in ('t', 'position', 'reference', 'effort')}
    samples: dict[str, list[float]] = {'t': [], 'measured': [], 'predicted': []}
    found = {'nodes': nodes, 'stoppable': stoppable, 'progress': None, 'fitted': False, 'motion': motion}
    return {**found, 'joints': [], 'notes': [], 'samples': samples, 'history': None}


def _open(browser: Chromium, watch: NodeProcess) -> None:
    watch.wait_for_line('in a browser')
    browser.go(re.search(r'http://\S+', watch.output)[0], 1000)  # type: ignore[index]
    browser.evaluate('robotid.ready.then(() => 1)')


def _text(browser: Chromium, selector: str) -> str:
    return str(browser.evaluate(f"(document.querySelector('{selector}') || {{textContent: ''}}).textContent"))


@pytest.mark.ros
def test_the_stop_button_stops_a_moving_arm(browser: Chromium, tmp_path: Path) -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    pytest.importorskip('trimesh', reason='the plot extra is not installed')
    from excitation_user import JOINTS, NODE, User, arguments

    from robotid_ros.excitation import save_excitation
    from robotid_ros.model import RobotModel

    environment = ros_environment()
    save_excitation(small_design(RobotModel.from_urdf(UR10E)), tmp_path / 'motion.yaml')
    arm = [str(Path(__file__).parents[1] / 'excitation_fake_arm.py'), ','.join(JOINTS)]
    node = [*NODE, *arguments(trajectory=tmp_path / 'motion.yaml', urdf_file=UR10E, periods=20, position_scaling=1.0)]
    with (
        NodeProcess(node, environment) as excitation,
        NodeProcess(arm, environment) as arm_process,
        NodeProcess(WATCH, environment) as watch,
    ):
        user = User(int(environment['ROS_DOMAIN_ID']))
        try:
            arm_process.wait_for_line('ready')
            _open(browser, watch)
            user.until(lambda: user.call('/excitation/start').success, 'a start', deadline=30.0)
            user.until(lambda: user.report()['velocity'] > 0.05, 'it moves')
            wait_until(lambda: 'period' in _text(browser, '.node[data-name="excitation"]'), 'the page shows the phase')
            wait_until(lambda: bool(browser.evaluate("document.getElementById('progress').value > 0")), 'the progress')
            panels = '[...document.querySelectorAll(".moved")]'
            drawn = f'{panels}.map(e => e.data.map(t => [...t.y]))'

            def drawn_over_each_other() -> bool:
                joints = browser.evaluate(drawn)
                near = [any(b is not None and abs(a - b) < 0.02 for a, b in zip(*both, strict=True)) for both in joints]
                return len(joints) == len(JOINTS) and all(near)  # how far the fake arm lags is a matter of the load

            wait_until(drawn_over_each_other, 'measured positions and the reference')
            assert 'off its reference' in _text(browser, '#motion .panel-title span')
            if os.environ.get('ROBOTID_PICTURES'):  # to look at
                for width in (1400, 390):
                    take = {'width': width, 'height': 1400, 'deviceScaleFactor': 1, 'mobile': width < 600}
                    browser.call('Emulation.setDeviceMetricsOverride', **take)
                    charts = '[...document.querySelectorAll(".js-plotly-plot")]'
                    fits = f'{charts}.every(e => !e.clientWidth || e._fullLayout.width <= e.clientWidth + 1)'
                    wait_until(lambda fits=fits: bool(browser.evaluate(fits)), 'the charts fit')
                    shot = base64.b64decode(browser.call('Page.captureScreenshot')['data'])
                    (Path(os.environ['ROBOTID_PICTURES']) / f'live-{width}.png').write_bytes(shot)
            for _ in range(5):  # on a busy computer the arm may have been stopped already, for what came late
                browser.evaluate("document.getElementById('stop').click()")
                wait_until(lambda: _text(browser, '#answer') not in ('', 'Stopping …'), 'the answer')
                if 'brought to rest' in _text(browser, '#answer'):
                    break
                assert 'stopped' in (user.text or ''), _text(browser, '#answer')
                user.until(lambda: user.call('/excitation/start').success, 'another start')
                user.until(lambda: user.report()['velocity'] > 0.05, 'it moves again')
            assert 'brought to rest' in _text(browser, '#answer')
            user.until_state('stopped')
            assert 'stopped on request' in (user.text or '')
            report = user.report()
            assert report['velocity'] < 1e-9
            assert report['refused'] == []
            wait_until(lambda: 'stopped' in _text(browser, '.node[data-name="excitation"]'), 'the page shows the end')
            assert 'silent' in str(
                browser.evaluate('document.querySelector(\'.node[data-name="recorder"]\').className')
            )
            assert browser.errors() == []
            excitation.signal(signal.SIGINT)
            excitation.wait()
            browser.evaluate("document.getElementById('stop').click()")
            wait_until(lambda: 'no excitation node' in _text(browser, '#answer'), 'it says that nobody is there')
        finally:
            user.close()
        watch.signal(signal.SIGINT)
        assert watch.wait() == 0, watch.output
        assert 'Traceback' not in watch.output


@pytest.mark.ros
def test_torque_and_convergence_of_a_real_identification_are_drawn(browser: Chromium) -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    from identification_client import Client, averaged, motion_with_torque
    from identification_helpers import TWO_LINKS
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String

    environment = ros_environment()
    node = ['-m', 'robotid_ros.nodes.identification', '--ros-args', '-p', 'tip_link:=tool']
    node += ['-p', 'friction:=coulomb_viscous+offset', '-p', 'monitor_rate:=200.0']
    with NodeProcess(node, environment), NodeProcess(WATCH, environment) as watch:
        client = Client(environment)
        try:
            _open(browser, watch)
            client.description.publish(String(data=TWO_LINKS))
            client.until(lambda: 'waiting for recordings' in client.status.get('message', ''), 'the robot being taken')
            text = 'document.body.innerText'
            wait_until(lambda: 'waiting for recordings' in browser.evaluate(text), 'the status on the page')
            assert 'Convergence' not in browser.evaluate(text)  # no empty chart
            for run in (1, 2):
                client.averaged.publish(averaged(run, 10.0 * run))
                client.until(lambda run=run: client.status.get('recordings') == str(run), 'a recording')
                wait_until(
                    lambda run=run: browser.evaluate("document.getElementById('convergence').data[0].x.at(-1)") == run,
                    'the convergence is drawn',
                )
            shown = browser.evaluate("document.getElementById('convergence').data.map(t => [...t.y])")
            assert shown[0][-1] == pytest.approx(float(client.status['relative_error']), rel=1e-6)
            assert client.call('identify').success
            (time, q, dq, _), torque = motion_with_torque(4)
            rows = iter(range(len(time)))

            def step() -> bool:
                k = next(rows)
                state = JointState(name=['shoulder', 'elbow'], position=q[k], velocity=dq[k], effort=torque[k].tolist())
                state.header.stamp.sec, fraction = divmod(round(time[k] * 1e9), 1_000_000_000)
                state.header.stamp.nanosec = fraction
                client.states.publish(state)
                if k % 20 != 19:
                    return False
                drawn = '[...document.querySelectorAll(".live")].map(e => e.data ? e.data[0].x.length : 0)'
                lengths = browser.evaluate(drawn)
                return bool(lengths) and min(lengths) > 40

            client.until(step, 'torque is drawn')
            curves = browser.evaluate("[...document.querySelectorAll('.live')].map(e => e.data.map(t => [...t.y]))")
            for joint in curves:
                measured, predicted = (np.array(values) for values in joint)
                assert np.abs(measured - predicted).mean() < 0.1 * np.abs(measured).max()
                assert np.abs(measured).max() > 0.05
            shapes = browser.evaluate(
                '[...document.querySelectorAll(".moved")].map(e => e.layout.shapes.map(s => s.y0))'
            )
            assert len(shapes) == 2
            assert shapes == [[joint.lower, joint.upper] for joint in parse_urdf(TWO_LINKS).joints.values()][:2]
            assert 'explained' in _text(browser, '#torque .panel-title span')
            assert browser.errors() == []
        finally:
            client.close()
        watch.signal(signal.SIGINT)
        assert watch.wait() == 0, watch.output
