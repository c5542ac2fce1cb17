"""Boolean arrays."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ['Mask']

Mask: TypeAlias = NDArray[np.bool_]
