"""The URDF of an arm to simulate: a packaged one by its name, any other by its file."""

from importlib import resources
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel
from robotid_ros.model.urdf import read_urdf_text

__all__ = ['arm_description', 'packaged_arms', 'start_position']

_CLEARANCE = 0.1


def packaged_arms() -> tuple[str, ...]:
    """Return the names of the arms that come with this package."""
    folder = resources.files('robotid_ros') / 'robots'
    return tuple(sorted(entry.name[: -len('.urdf')] for entry in folder.iterdir() if entry.name.endswith('.urdf')))


def arm_description(robot: str) -> str:
    """Return the text of a URDF.

    Parameters
    ----------
    robot : str
        Name of a packaged arm, or a file.

    Raises
    ------
    ModelError
        If it is neither, or the file is no XML.
    """
    if robot in packaged_arms():
        return (resources.files('robotid_ros') / 'robots' / f'{robot}.urdf').read_text(encoding='utf-8')
    if not Path(robot).expanduser().is_file():
        raise ModelError(
            f"robot '{robot}' is neither a URDF file nor one of the packaged arms: {', '.join(packaged_arms())}"
        )
    text = read_urdf_text(Path(robot)).lstrip('\ufeff')
    if not text.lstrip().startswith('<'):
        raise ModelError(f"'{robot}' is not a URDF: expected XML, which begins with '<', got {text[:20]!r}")
    return text


def start_position(model: RobotModel) -> Array:
    """Return where an arm starts: at zero, or the nearest that is clear of the limits.

    The clearance is 0.1 rad (or m), or a quarter of the range where that is less.

    Parameters
    ----------
    model : RobotModel

    Returns
    -------
    ndarray, shape (n,)
        [rad or m]
    """
    lower, upper = model.limits.lower, model.limits.upper
    clearance = np.minimum(_CLEARANCE, 0.25 * (upper - lower))
    start: Array = np.clip(np.zeros(model.n), lower + clearance, upper - clearance)
    return start
