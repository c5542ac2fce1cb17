# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Processes of nodes in a ROS domain of their own: watched while they run, ended with their parent."""

import atexit
import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from robotid_ros.errors import RobotIdError

# Above domain 101 the ports of DDS lie in the range that the system hands out to any program.
_DOMAINS = range(1, 102)
# Ports of a domain by the RTPS standard (OMG DDSI-RTPS 2.5, section 9.6.2): one for all its participants,
# and every second one from the eleventh on for each of them.
_FIRST_PORT, _PORTS_PER_DOMAIN = 7400, 250
_PARTICIPANT_PORTS = range(10, 30, 2)

_MOST_RESERVED = 16
_reserved: deque[socket.socket] = deque()
_PR_SET_PDEATHSIG = 1
# Looked up before any fork: the child must not need a lock that another thread held at that moment.
_prctl = ctypes.CDLL(None).prctl if sys.platform == 'linux' else None


def reserve_domain() -> int:
    """Return a domain that no process on this machine uses, and reserve it.

    A random domain alone is not enough: one in a hundred would be that of a driver which moves a real arm. The
    reservation lasts until this process ends, or has made sixteen more.

    Raises a RobotIdError if every domain is in use.
    """
    for domain in random.SystemRandom().sample(_DOMAINS, len(_DOMAINS)):
        claim = _claimed(domain)
        if claim is None:
            continue
        if _silent(domain):
            _release(_MOST_RESERVED - 1)
            _reserved.append(claim)
            return domain
        claim.close()
    raise RobotIdError(
        f'every ROS domain from {_DOMAINS[0]} to {_DOMAINS[-1]} is in use on this machine; end the nodes of one of them'
    )


def _release(left: int = 0) -> None:
    """Close the oldest reservations until ``left`` remain."""
    while len(_reserved) > left:
        _reserved.popleft().close()


atexit.register(_release)


def _claimed(domain: int) -> socket.socket | None:
    """Return a socket whose name says that the domain is taken, or None if somebody else has it."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if sys.platform != 'linux':  # no names that vanish with their process
        return claim
    try:
        claim.bind(f'\0robotid_ros domain {domain}')
    except OSError:
        claim.close()
        return None
    return claim


def _silent(domain: int) -> bool:
    """Return whether no participant of this domain has a port open."""
    first = _FIRST_PORT + _PORTS_PER_DOMAIN * domain
    for port in (first, *(first + offset for offset in _PARTICIPANT_PORTS)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(('', port))
            except OSError:
                return False
    return True


class NodeDiedError(RobotIdError, RuntimeError):
    """A node ended while it was needed."""


def isolated_environment() -> dict[str, str]:
    """Return an environment in which nodes hear only each other.

    A demonstration must never move a real arm that listens on the same network: discovery stays
    on this machine, in a domain of its own.
    """
    environment = dict(os.environ)
    environment['ROS_DOMAIN_ID'] = str(reserve_domain())
    environment['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    if environment.get('ROS_DISTRO') == 'humble':  # knows the older variable only
        environment['ROS_LOCALHOST_ONLY'] = '1'
    environment['PYTHONUNBUFFERED'] = '1'
    return environment


def parameter_arguments(values: Mapping[str, object]) -> list[str]:
    """Return ``--ros-args -p name:=value ...``; ROS reads values as YAML, which JSON is."""
    spelled = (f'{name}:={json.dumps(value, default=str)}' for name, value in values.items())
    return ['--ros-args', *(word for each in spelled for word in ('-p', each))]


def die_with_parent() -> None:
    """Ask the kernel, between fork and exec, to end this process when its parent dies, however it dies."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class NodeGroup:
    """Starts node modules as processes, keeps the output of each as ``<name>.log`` in a folder, and ends them all."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment = dict(environment)
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._tails: dict[str, deque[str]] = {}
        self._readers: list[threading.Thread] = []

    def start(self, name: str, arguments: Sequence[str] = ()) -> None:
        """Start ``python -m robotid_ros.nodes.<name>``."""
        process = subprocess.Popen(
            [sys.executable, '-m', f'robotid_ros.nodes.{name}', *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends them in order
            preexec_fn=die_with_parent,
        )
        self._processes[name] = process
        self._tails[name] = deque(maxlen=20)
        reader = threading.Thread(target=self._collect, args=(name, process), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _collect(self, name: str, process: 'subprocess.Popen[str]') -> None:
        assert process.stdout is not None
        with open(self._folder / f'{name}.log', 'w', encoding='utf-8') as log:
            for line in process.stdout:
                log.write(line)
                log.flush()
                self._tails[name].append(line.rstrip())

    def check(self) -> None:
        """Raise a NodeDiedError if a node has ended, with its name, how it ended and the last line it wrote."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is None:
                continue
            how = f'was killed by {signal.Signals(-code).name}' if code < 0 else f'ended with exit code {code}'
            last = next((line for line in reversed(self._tails[name]) if line), 'it wrote nothing')
            raise NodeDiedError(f"the node '{name}' {how}; its last line: {last}")

    def stop(self, patience: float = 8.0) -> None:
        """End all nodes: SIGINT first, SIGKILL for those that have not ended within ``patience`` seconds."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in self._processes.values():
            try:
                process.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for reader in self._readers:
            reader.join(timeout=2.0)

    def __enter__(self) -> 'NodeGroup':
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
