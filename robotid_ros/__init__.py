"""Live data capture and identification of robot arms.

The numerical core (``model``, ``dynamics``, ``friction``, ``signals``, ``data``, ``excitation``,
``identification``, ``calibration``, ``free_floating``) needs numpy and scipy only; ROS is imported
by ``nodes`` alone and MuJoCo by ``simulation`` alone.
"""

from importlib.metadata import PackageNotFoundError, version

__all__ = ['__version__']

try:
    __version__ = version('robotid_ros')
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = '0.0.0+source'
