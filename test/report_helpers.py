# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A headless Chromium spoken to over the DevTools protocol, and runs to report on."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robotid_ros
from robotid_ros.data import Dataset
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation import ExcitationConfig, ExcitationDesign, FourierTrajectory
from robotid_ros.excitation.criteria import Excitation
from robotid_ros.model import JointLimits, RobotModel

DEADLINE = 300.0
UR10E = Path(robotid_ros.__file__).parent / 'robots' / 'ur10e.urdf'


def find_chromium() -> str:
    """Return the browser's path; skip the test where there is none."""
    for name in ('chromium', 'chromium-browser', 'google-chrome'):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip('no Chromium on PATH (on Debian: apt-get install chromium)')


# The browser listens on descriptor 3 and answers on 4, whatever numbers the pipes have here.
_ON_3_AND_4 = """
import fcntl, os, sys
inward, outward = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(inward, 3)
os.dup2(outward, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Chromium:
    """A headless browser with one page; close it in any case."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.mkdtemp(prefix='chromium-')
        inward, self._write = os.pipe()
        self._read, outward = os.pipe()
        options = [
            '--headless=new',
            '--no-sandbox',
            '--enable-unsafe-swiftshader',
            '--no-first-run',
            '--remote-debugging-pipe',
        ]
        command = [program, *options, f'--user-data-dir={self._profile}', 'about:blank']
        self._process = subprocess.Popen(
            [sys.executable, '-c', _ON_3_AND_4, str(inward), str(outward), *command],
            pass_fds=(inward, outward),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(inward)
        os.close(outward)
        self._buffer = b''
        self._count = 0
        self._session = ''
        self.events: list[dict[str, Any]] = []
        self.drawn: tuple[Path, int] | None = None  # a page with all its charts, and its width
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self._session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')

    def close(self) -> None:
        os.close(self._write)
        self._process.terminate()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {'id': self._count, 'method': method, 'params': parameters}
        if self._session:
            message['sessionId'] = self._session
        os.write(self._write, json.dumps(message).encode() + b'\0')
        while True:
            answer = self._next()
            if answer.get('id') == self._count:
                assert 'error' not in answer, answer['error']
                result: dict[str, Any] = answer['result']
                return result
            self.events.append(answer)

    def wait(self, event: str) -> None:
        while not any(found.get('method') == event for found in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE
        while b'\0' not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, 'the browser does not answer'
            data = os.read(self._read, 1 << 20)
            assert data, 'the browser has gone'
            self._buffer += data
        line, self._buffer = self._buffer.split(b'\0', 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def open(self, path: Path, width: int, height: int = 900) -> None:
        """Load a file in a window of some size."""
        self.go(path.resolve().as_uri(), width, height)

    def go(self, address: str, width: int, height: int = 900) -> None:
        """Load an address in a window of some size."""
        self.call(
            'Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.events.clear()
        self.drawn = None
        self.call('Page.navigate', url=address)
        self.wait('Page.loadEventFired')

    def evaluate(self, expression: str) -> Any:
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in answer, answer['exceptionDetails']
        return answer['result'].get('value')

    def complaints(self) -> list[str]:
        """Return what the console or the log said since the page was opened."""
        found = []
        for event in self.events:
            if event['method'] == 'Runtime.consoleAPICalled' and event['params']['type'] in ('error', 'warning'):
                found.append(str(event['params']['args']))
            elif event['method'] == 'Log.entryAdded':
                found.append(event['params']['entry']['text'])
            elif event['method'] == 'Runtime.exceptionThrown':
                found.append(str(event['params']['exceptionDetails']))
        return found

    def errors(self) -> list[str]:
        """Return what went wrong since the page was opened, without advice such as that of software graphics."""
        found = []
        for event in self.events:
            if event['method'] == 'Runtime.consoleAPICalled' and event['params']['type'] == 'error':
                found.append(str(event['params']['args']))
            elif event['method'] == 'Log.entryAdded' and event['params']['entry']['level'] == 'error':
                found.append(event['params']['entry']['text'])
            elif event['method'] == 'Runtime.exceptionThrown':
                found.append(str(event['params']['exceptionDetails']))
        return found

    def requests(self) -> list[str]:
        """Return the addresses asked for since the page was opened."""
        asked = [event for event in self.events if event['method'] == 'Network.requestWillBeSent']
        return [event['params']['request']['url'] for event in asked]

    def screenshot(self, path: Path) -> None:
        answer = self.call('Page.captureScreenshot', captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer['data']))

    def pdf(self) -> bytes:
        answer = self.call('Page.printToPDF', preferCSSPageSize=True, printBackground=False)
        return base64.b64decode(answer['data'])


def moving_arm(seed: int, samples: int = 1500) -> tuple[RobotModel, Dataset]:
    """Return an arm and a noisy run of it, with friction, twice as heavy as its description says."""
    rng = np.random.default_rng(seed)
    model = RobotModel.from_urdf(UR10E)
    n = model.n
    trajectory = FourierTrajectory(
        a=rng.normal(0.0, 0.25, (n, 5)), b=rng.normal(0.0, 0.25, (n, 5)), offset=rng.normal(0, 1, n), base_frequency=0.1
    )
    time_ = np.linspace(0.0, 10.0, samples, endpoint=False)
    q, dq, ddq = trajectory.evaluate(time_)
    heavy = model.with_inertial(2.0 * model.inertial)
    strength = 5.0 / (1.0 + np.arange(n))
    tau = inverse_dynamics(heavy, q, dq, ddq) + strength * (np.tanh(dq / 0.01) + dq) + rng.normal(0.0, 0.2, q.shape)
    dataset = Dataset(
        joint_names=model.joint_names, time=time_, q=q, dq=dq, ddq=ddq, tau=tau, rate=samples / 10.0, cutoff=20.0
    )
    return model, dataset


def small_design(model: RobotModel, size: float = 0.1, condition: float = 12.0, **settings: object) -> ExcitationDesign:
    """Return a design without a search: cosines about an upright pose."""
    rng = np.random.default_rng(2)
    a = np.zeros((model.n, 2))
    a[:, 0], a[:, 1] = size, -0.25 * size * rng.uniform(0.5, 1.0, model.n)
    offset = np.array([0.0, -np.pi / 2, 0.6, -1.0, 0.4, 0.0])[: model.n]
    trajectory = FourierTrajectory(a=a, b=np.zeros_like(a), offset=offset, base_frequency=0.1)
    limits = JointLimits(
        **{
            **{name: getattr(model.limits, name) for name in ('lower', 'upper', 'velocity', 'jerk', 'effort')},
            'acceleration': np.full(model.n, 8.0),
        }
    )
    criteria = Excitation(
        condition=300.0, condition_scaled=condition, log_det=1.0, mean_variance=1.0, worst_variance=1.0
    )
    return ExcitationDesign(
        trajectory=trajectory,
        joint_names=model.joint_names,
        excitation=criteria,
        config=ExcitationConfig(period=10.0, **{'link_radius': 0.05, **settings}),  # type: ignore[arg-type]
        limits=limits,
        base_parameters=36,
    )
