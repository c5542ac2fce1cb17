# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Nodes in processes of their own, in a ROS domain nobody else hears."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from robotid_ros.demo.processes import die_with_parent, isolated_environment

DEADLINE = 300.0  # seconds until a wait gives up, however busy the machine; never slept through
FAREWELL = 20.0  # seconds a process has to end by itself after a test


def ros_environment() -> dict[str, str]:
    """Return an environment with a domain of its own, discovery on this machine only, and the tests' own modules."""
    path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get('PYTHONPATH', ''))))
    return {**isolated_environment(), 'PYTHONPATH': path, 'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'}


def wait_until(condition: Callable[[], bool], what: str, deadline: float = DEADLINE) -> None:
    """Poll a condition until it holds; fail with the reason at the deadline."""
    end = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f'{what} did not happen within {deadline:g} s')
        time.sleep(0.01)


_REFUSED = """
import importlib, json, sys
main = importlib.import_module(sys.argv[1]).main
for arguments in json.loads(sys.argv[2]):
    print('ended with', main(arguments), flush=True)
"""


def assert_refused(module: str, cases: dict[str, list[str]], environment: dict[str, str]) -> None:
    """Call the main function of a node with arguments that it must refuse in one line, the words of each case.

    All in one process: importing a node takes longer than refusing.
    """
    arguments = [['--ros-args', *(word for pair in pairs for word in ('-p', pair))] for pairs in cases.values()]
    with NodeProcess(['-c', _REFUSED, module, json.dumps(arguments)], environment) as node:
        assert node.wait() == 0, node.output
    lines = [line for line in node.lines if not line.startswith('[ERROR]')]  # the same, logged before
    assert len(lines) == 2 * len(cases), node.output
    for words, said, ended in zip(cases, lines[::2], lines[1::2], strict=True):
        assert words in said
        assert ended == 'ended with 2', said


CALLS_AND_WAITS = """
import sys, rclpy
from std_srvs.srv import Trigger
rclpy.init()
node = rclpy.create_node('caller')
client = node.create_client(Trigger, sys.argv[1])
while not client.wait_for_service(1.0):
    pass
client.call_async(Trigger.Request())
print('called', flush=True)
rclpy.spin(node)
"""
"""A client of a Trigger service in a process of its own, to be killed before it has its answer."""


class NodeProcess:
    """One node (or any command) with its output collected line by line."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        self.lines: list[str] = []
        self._expected = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    @property
    def output(self) -> str:
        return '\n'.join(self.lines)

    @property
    def ended(self) -> bool:
        """Whether the process is over; then all it wrote is there."""
        if self.process.poll() is None:
            return False
        self._reader.join(timeout=DEADLINE)
        return True

    def wait_for_line(self, text: str, deadline: float = DEADLINE) -> None:
        """Wait until a line contains a text; fail as soon as it cannot come any more."""
        self._wait_for(lambda: any(text in line for line in self.lines), f'a line with {text!r}', deadline)

    def expect(self, word: str, deadline: float = DEADLINE) -> str:
        """Wait for the next line that begins with a word, after those found before."""

        def found() -> bool:
            while self._expected < len(self.lines):
                self._expected += 1
                if self.lines[self._expected - 1].startswith(word):
                    return True
            return False

        self._wait_for(found, f'a further line {word!r}', deadline)
        return self.lines[self._expected - 1]

    def _wait_for(self, condition: Callable[[], bool], what: str, deadline: float) -> None:
        def seen() -> bool:
            ended = self.ended  # before looking: what it wrote last still counts
            if condition():
                return True
            assert not ended, f'ended with {self.process.returncode} instead of {what}:\n{self.output}'
            return False

        try:
            wait_until(seen, what, deadline)
        except AssertionError as error:
            raise AssertionError(f'{error}; the last that was written:\n{self.output[-4000:]}') from None

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f'{line}\n')
        self.process.stdin.flush()

    def wait(self, deadline: float = DEADLINE) -> int:
        """Return its exit code, once it has ended and its output is there."""
        try:
            code = self.process.wait(timeout=deadline)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'did not end within {deadline:g} s:\n{self.output}') from None
        self._reader.join(timeout=deadline)
        return code

    def signal(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)

    def __enter__(self) -> 'NodeProcess':
        return self

    def __exit__(self, *_: object) -> None:
        """End the process; by SIGKILL only if need be, which leaves the middleware's shared memory behind."""
        if self.process.poll() is None:
            self.signal()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=FAREWELL)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=DEADLINE)
        with suppress(BrokenPipeError):
            self.process.stdin.close()
