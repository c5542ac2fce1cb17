# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A ROS domain that nothing else on this machine is in."""

import atexit
import random
import socket
import sys
from collections import deque

from robotid_ros.errors import RobotIdError

# Above domain 101 the ports of DDS lie in the range that the system hands out to any program.
_DOMAINS = range(1, 102)
# Ports of a domain by the RTPS standard (OMG DDSI-RTPS 2.5, section 9.6.2): one for all its participants,
# and every second one from the eleventh on for each of them.
_FIRST_PORT, _PORTS_PER_DOMAIN = 7400, 250
_PARTICIPANT_PORTS = range(10, 30, 2)

_MOST_RESERVED = 16
_reserved: deque[socket.socket] = deque()


def reserve_domain() -> int:
    """Return a domain that no process on this machine uses, and reserve it.

    A random domain alone is not enough: one in a hundred would be that of a driver which moves a real arm. The
    reservation lasts until this process ends, or has made sixteen more.

    Raises
    ------
    RobotIdError
        If every domain is in use.
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
