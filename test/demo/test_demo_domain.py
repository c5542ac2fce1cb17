# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The domain of a demonstration is nobody else's."""

import socket
import subprocess
import sys

import pytest

from robotid_ros.demo.processes import _silent, reserve_domain

ASK = 'from robotid_ros.demo.processes import reserve_domain\nprint(*(reserve_domain() for _ in range(40)))'


@pytest.mark.skipif(sys.platform != 'linux', reason='only Linux has names that vanish with their process')
def test_what_one_process_has_reserved_no_other_gets() -> None:
    ours = {reserve_domain() for _ in range(16)}
    assert len(ours) == 16
    command = [sys.executable, '-W', 'error', '-c', ASK]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert done.stderr == ''  # every socket is closed, those given back and those of the end
    theirs = set(map(int, done.stdout.split()))
    assert theirs <= set(range(1, 102))
    assert not ours & theirs


@pytest.mark.parametrize('port', [0, 10, 12])
def test_a_domain_with_a_participant_is_left_alone(port: int) -> None:
    """The ports are those of the RTPS standard: 7400 + 250 d for all, 7410 + 250 d and every second one for each."""
    domain = reserve_domain()  # nobody is disturbed in it
    assert _silent(domain)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as participant:
        participant.bind(('', 7400 + 250 * domain + port))
        assert not _silent(domain)
    assert _silent(domain)
