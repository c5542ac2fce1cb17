# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The tree of errors this package raises.

Every message says what was expected, what came, and what is available or can be done.
Errors caused by input are also :class:`ValueError`.
"""

from typing import Any, TypeVar

_Own = TypeVar('_Own', bound='RobotIdError')

INTERRUPTED = 130  # exit code after a Ctrl-C, as shells say it: 128 + SIGINT


class RobotIdError(Exception):
    """Root of every error this package raises on purpose.

    Attributes
    ----------
    about : dict
        What the message is about, as far as the place that raised it knows it: the ``file`` and the ``line`` in it,
        from 1; the ``name`` of the joint, link, column, setting or topic that is missing or wrong; what was
        ``expected`` there, such as a limit or the names there are; and what was ``found``.
    """

    def __init__(self, message: str, **about: Any) -> None:
        super().__init__(message)
        self.about = about

    def within(self: _Own, where: str, **about: Any) -> _Own:
        """Return the same error with the place where it came up before its message."""
        return type(self)(f'{where}: {self}', **{**about, **self.about})


class ModelError(RobotIdError, ValueError):
    """A robot description cannot be used as it stands."""


class SeveralArmsError(ModelError):
    """A robot description holds several equal arms, and nothing says which is meant."""


class DataError(RobotIdError, ValueError):
    """A recording or dataset cannot be used as it stands."""


class ExcitationError(RobotIdError, ValueError):
    """No trajectory satisfies the request, or one breaks a limit."""


class IdentificationError(RobotIdError, ValueError):
    """The data do not allow a usable dynamic model."""


class CalibrationError(RobotIdError, ValueError):
    """The data do not allow a usable kinematic calibration."""


class MissingDependencyError(RobotIdError, ImportError):
    """An optional dependency is needed and absent; the message names the extra to install."""

    @classmethod
    def of(cls, package: str, extra: str, purpose: str) -> 'MissingDependencyError':
        """Return the error for one missing package.

        ``package``: name on PyPI. ``extra``: the extra of ``robotid_ros`` that brings it. ``purpose``: what it is
        needed for, to follow "is needed to".
        """
        return cls(f"'{package}' is needed to {purpose}; install it with: pip install 'robotid_ros[{extra}]'")


class ModelWarning(UserWarning):
    """A robot description is usable, but may be wrong."""
