"""Where a simulated arm begins."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.model import RobotModel

__all__ = ['start_position']

_CLEARANCE = 0.1


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
