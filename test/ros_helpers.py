"""Nodes in processes of their own, in a ROS domain nobody else hears."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

DEADLINE = 60.0  # seconds until a wait gives up; never slept through


def ros_environment() -> dict[str, str]:
    """Return an environment with a random domain, discovery on this machine only."""
    environment = dict(os.environ)
    environment['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(1, 101))
    environment['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    environment['PYTHONUNBUFFERED'] = '1'
    environment['OMP_NUM_THREADS'] = environment['OPENBLAS_NUM_THREADS'] = '1'
    return environment


def wait_until(condition: Callable[[], bool], what: str, deadline: float = DEADLINE) -> None:
    """Poll a condition until it holds; fail with the reason at the deadline."""
    end = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f'{what} did not happen within {deadline:g} s')
        time.sleep(0.01)


class NodeProcess:
    """One node (or any command) with its output collected line by line."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    @property
    def output(self) -> str:
        return '\n'.join(self.lines)

    def wait_for_line(self, text: str, deadline: float = DEADLINE) -> None:
        def seen() -> bool:
            if any(text in line for line in self.lines):
                return True
            assert self.process.poll() is None, f'ended with {self.process.returncode}:\n{self.output}'
            return False

        wait_until(seen, f'a line with {text!r} (got: {self.output[-2000:]})', deadline)

    def wait(self, deadline: float = DEADLINE) -> int:
        code = self.process.wait(timeout=deadline)
        self._reader.join(timeout=5.0)
        return code

    def signal(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)

    def __enter__(self) -> 'NodeProcess':
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=10)
